"""The audit: what a snapshot of the tables says about every batch, and where it contradicts itself.

``tables`` reads exports or the tables, and types their rows. ``progress`` measures what is done and what is
missing; ``sums`` recomputes totals. ``findings`` finds contradictions, and judges each batch. ``driver``
writes all of it, and hands what can be repaired to the ledger.
"""
