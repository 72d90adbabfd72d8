"""The whole service in one process: stores in memory, and around them what AWS does for a deployed one.

``Tracker.in_memory()`` and ``fanin.testing`` stand on it.
"""
