"""Deleting the messages of a batch's failed items, a page at a time."""

from __future__ import annotations

from typing import Final

from fanin.app.ports import Ports
from fanin.app.ports.parts import IN_ROW

PAGE: Final = 500
"""Failures whose messages are deleted together."""
PAGES: Final = 10
"""Pages that one call of ``forget`` deletes."""


def forget(ports: Ports, batch_id: int) -> str | None:
    """Delete the messages of the first 5,000 failures of a batch that was removed.

    Those of others go with the end of the batch's lifetime: rows by their time to live, objects by the rules
    of the bucket.

    Args:
        ports: the rows and the bucket.
        batch_id: the batch.

    Returns:
        The cursor with which ``forget_page`` goes on; None if all are deleted.
    """
    cursor: str | None = None
    for _ in range(PAGES):
        cursor = forget_page(ports, batch_id, cursor)
        if cursor is None:
            break
    return cursor


def forget_page(ports: Ports, batch_id: int, cursor: str | None = None) -> str | None:
    """Delete the messages of a page of failures; their notes stay until they expire.

    A page may be deleted again, and by two processes at once.

    Args:
        ports: the rows and the bucket.
        batch_id: the batch, which was removed.
        cursor: what the call for the page before returned.

    Returns:
        The cursor of the next page; None at the end.
    """
    notes, after = ports.parts.failures(batch_id, cursor=cursor, limit=PAGE)
    ports.parts.delete_messages(batch_id, [note.ordinal for note in notes if note.kept == IN_ROW])
    keys = [note.kept for note in notes if note.kept not in {"", IN_ROW}]
    if keys:
        ports.claims.delete(keys)
    return after
