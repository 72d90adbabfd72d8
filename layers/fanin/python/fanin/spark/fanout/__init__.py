"""A dataset to a queue as one batch.

``driver`` runs the steps: ``bodies`` makes messages of the rows, ``staging`` numbers them, and ``sending`` is
what the tasks do. ``sink`` does it from a DataFrame: ``df.write.format("fanin")``.
"""
