"""The figures that fanin promises, measured: ``python -m bench``."""
