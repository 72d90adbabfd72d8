"""Targets: calling back when a batch ends."""
