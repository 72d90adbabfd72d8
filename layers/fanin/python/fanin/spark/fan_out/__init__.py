"""A dataset to a queue as one batch."""
