"""Acknowledgements in bulk: from a dataset of items to one write for each word of 64.

``driver`` and ``coalescing`` run the steps. Tasks read Parquet files themselves (``parquet_files``), or get
rows from Spark; ``coalescer`` and ``page_builder`` are what they do with either. ``page_merger`` brings the
results of all tasks together, and ``ledger_writes`` writes them.
"""
