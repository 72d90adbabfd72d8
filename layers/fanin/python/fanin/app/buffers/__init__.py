"""Bounded buffers: their slots, puts and records."""
