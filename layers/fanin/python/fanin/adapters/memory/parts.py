"""Notes of failed items, in a dict."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fanin.adapters import cursors
from fanin.adapters.memory.accesses import Accesses
from fanin.app.ports.batches import FailureRow


class MemoryParts:
    """A ``PartStore``."""

    def __init__(self, accesses: Accesses) -> None:
        self._accesses = accesses
        self._failures: dict[int, dict[int, FailureRow]] = {}

    def put_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:  # noqa: ARG002
        for row in {row.ordinal: row for row in rows}.values():
            self._accesses.write("parts.put_failures", lambda: self._put(batch_id, row))  # noqa: B023

    def _put(self, batch_id: int, row: FailureRow) -> None:
        self._failures.setdefault(batch_id, {})[row.ordinal] = row

    def reasons(self, batch_id: int, ordinals: Collection[int]) -> dict[int, str]:
        rows = self._accesses.read("parts.reasons", lambda: dict(self._failures.get(batch_id, {})))
        return {ordinal: rows[ordinal].reason for ordinal in sorted(set(ordinals)) if ordinal in rows}

    def failures(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[FailureRow], str | None]:
        listing = f"failures of {batch_id}"
        (after,) = cursors.decode(listing, cursor, {1}) if cursor is not None else (-1,)
        rows = self._accesses.read("parts.failures", lambda: dict(self._failures.get(batch_id, {})))
        ordinals = sorted(ordinal for ordinal in rows if ordinal > after)
        page = [rows[ordinal] for ordinal in ordinals[:limit]]
        return page, cursors.encode(listing, page[-1].ordinal) if len(ordinals) > limit else None
