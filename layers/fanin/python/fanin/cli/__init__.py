"""The command line: ``fanin``."""
