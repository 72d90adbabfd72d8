"""Acknowledgements in bulk: from a dataset of item ids to one write a word."""
