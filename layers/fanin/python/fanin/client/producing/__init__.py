"""Producers: a batch in hand, and sending the messages of its items."""
