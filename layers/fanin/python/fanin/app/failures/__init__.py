"""What is kept of failed items: notes, and messages in rows or in the bucket."""
