"""The audit: what a snapshot of the tables says about every batch, and where it contradicts itself.

``tables`` reads exports or the tables, and types their rows. ``progress`` measures what is done and what is
missing; ``sums`` recomputes totals. ``findings`` finds contradictions, ``verdicts`` puts it all
together, and ``driver`` writes it, and hands what can be repaired to the ledger.
"""
