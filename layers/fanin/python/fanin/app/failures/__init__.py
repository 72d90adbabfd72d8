"""Failures after the fact: sending the messages of failed items again."""
