"""Consumers that others run: ``fanin.contrib.celery`` and ``fanin.contrib.dramatiq``.

Each says what became of an item when its task has ended, and needs the extra of its name.
"""
