"""Consumers: on Lambda or anywhere, and how they acknowledge."""
