"""Producers: a batch, and sending the messages of its items."""
