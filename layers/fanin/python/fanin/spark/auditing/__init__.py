"""The audit: what a snapshot of the tables says about every batch, and where it contradicts itself.

``export`` and ``scan`` read the tables, and ``rows`` types their rows. ``sql_tree`` is the arithmetic of the
tree in SQL. ``progress`` measures what is done and what is missing, by the ``sweep`` of each task; ``sums``
recomputes totals. ``findings`` finds contradictions, ``verdicts`` puts it all together, and ``verifying``
hands what can be repaired to the ledger.
"""
