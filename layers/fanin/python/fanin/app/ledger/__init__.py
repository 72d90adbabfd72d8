"""Batches: opening, adding, acknowledging, reading, ending."""
