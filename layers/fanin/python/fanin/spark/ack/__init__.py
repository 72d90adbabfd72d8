"""Acknowledgements in bulk: from a dataset of items to one write for each word of 64.

``driver`` runs the steps. ``strategy`` says how rows become words, ``steps`` has the steps as DataFrames,
``tasks``, ``coalescer`` and ``page_builder`` are what a task does with its rows, ``page_merger`` and
``lifting`` bring the results of all tasks together, and ``ledger_writes`` writes them.
"""
