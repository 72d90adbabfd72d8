"""Records in a dict."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from fanin.adapters import cursors
from fanin.adapters.memory.calls import Calls
from fanin.app.ports.records import Record, RecordPage
from fanin.app.ports.system import Clock


class MemoryRecords:
    """A ``Records``.

    Args:
        table: name in the counts, such as ``directory``.
        calls: counts rows.
        clock: tells what is past its time to live.

    Attributes:
        changes: (room, old, new) of every write, as the table's stream would tell them.
    """

    def __init__(self, table: str, calls: Calls, clock: Clock) -> None:
        self._table = table
        self._calls = calls
        self._clock = clock
        self._rooms: dict[str, dict[str, Record]] = {}
        self.changes: list[tuple[str, Record | None, Record | None]] = []

    def read(self, room: str, names: Collection[str]) -> dict[str, Record]:
        rows = {
            name: self._calls.read(f"{self._table}.read", partial(self._get, room, name)) for name in names
        }
        return {name: row for name, row in rows.items() if row is not None}

    def page(self, room: str, *, prefix: str = "", cursor: str | None = None, limit: int = 100) -> RecordPage:
        listing = f"{self._table} {room} {prefix}"
        after = cursors.decode_name(listing, cursor) if cursor is not None else ""
        rows = self._calls.read(f"{self._table}.page", lambda: dict(self._rooms.get(room, {})))
        found = sorted(name for name in rows if name.startswith(prefix) and name > after)
        records = [rows[name] for name in found[:limit] if self._lives(rows[name])]
        return RecordPage(
            records, cursors.encode_name(listing, found[limit - 1]) if len(found) > limit else None
        )

    def put(
        self,
        room: str,
        name: str,
        value: Mapping[str, Any],
        *,
        expires_at: int,
        if_version: int | None = None,
    ) -> tuple[Record | None, bool]:
        def write() -> tuple[Record | None, bool]:
            old = self._rooms.get(room, {}).get(name)
            version = old.version if old and self._lives(old) else 0
            if if_version is not None and version != if_version:
                self._calls.refused[f"{self._table}.put"] += 1
                return self._get(room, name), False
            new = Record(name, dict(value), (old.version if old else 0) + 1, expires_at)
            self._rooms.setdefault(room, {})[name] = new
            self.changes.append((room, old, new))
            return new, True

        return self._calls.write(f"{self._table}.put", write)

    def put_all(self, room: str, values: Mapping[str, Mapping[str, Any]], *, expires_at: int) -> None:
        for name, value in values.items():
            self._calls.write(
                f"{self._table}.put",
                lambda: self._rooms.setdefault(room, {}).update(
                    {name: Record(name, dict(value), 1, expires_at)}  # noqa: B023
                ),
            )

    def delete(self, room: str, name: str, *, if_version: int | None = None) -> bool:
        def write() -> bool:
            old = self._get(room, name)
            if old is None or if_version not in {None, old.version}:
                return False
            del self._rooms[room][name]
            self.changes.append((room, old, None))
            return True

        return self._calls.write(f"{self._table}.delete", write)

    def _get(self, room: str, name: str) -> Record | None:
        record = self._rooms.get(room, {}).get(name)
        return record if record and self._lives(record) else None

    def _lives(self, record: Record) -> bool:
        return record.expires_at * 1000 > self._clock.now()
