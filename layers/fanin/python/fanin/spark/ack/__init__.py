"""Acknowledgements in bulk: from a dataset of items to one write for each word of 64.

``driver`` runs the steps, and ``steps`` has them as DataFrames. Tasks read Parquet files themselves, or get
rows from Spark; ``coalescer`` and ``page_builder`` are what they do with either. ``page_merger`` brings the
results of all tasks together, and ``ledger_writes`` writes them.
"""
