"""Consumers, on Lambda or in any process, and how they acknowledge."""
