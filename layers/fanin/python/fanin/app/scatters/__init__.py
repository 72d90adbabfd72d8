"""Scatter-gather: a message to many recipients, and their replies."""
