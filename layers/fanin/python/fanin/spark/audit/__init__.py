"""The audit: what a snapshot of the tables says about every batch, and where it contradicts itself.

``rows`` types the tables' rows, ``sql_tree`` is the arithmetic of the tree in SQL, ``progress`` measures what
is done and what is missing, ``findings`` finds contradictions, ``verdicts`` puts it all together, and
``verifying`` hands what can be repaired to the ledger.
"""
