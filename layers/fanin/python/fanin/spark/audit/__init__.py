"""The audit: what a snapshot of the tables says of every batch, and where it contradicts itself.

``rows`` reads the tables' rows, ``shape`` is the arithmetic of the tree as SQL, ``coverage`` measures what is
done and what is missing, ``faults`` finds what does not agree, ``report`` puts it together, and ``verifying``
hands what can be repaired to the ledger.
"""
