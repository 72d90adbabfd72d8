"""Redrives: sending the messages of failed items again."""
