"""Measures the figures that fanin promises: ``python -m bench``."""
