"""Records, in a dict."""

import json
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from fanin.adapters import cursors
from fanin.adapters.memory.accesses import Accesses
from fanin.app.ports.records import Record, RecordPage, Records
from fanin.app.ports.system import Clock


class MemoryRecords(Records):
    """A ``Records``.

    Args:
        table: name of its accesses, such as ``directory``.
        accesses: counts rows.
        clock: tells which records are past their time to live.

    Attributes:
        changes: every write in order, as (namespace, record before, record after), as in the table's stream.
    """

    def __init__(self, table: str, accesses: Accesses, clock: Clock) -> None:
        self._table = table
        self._accesses = accesses
        self._clock = clock
        self._namespaces: dict[str, dict[str, Record]] = {}
        self.changes: list[tuple[str, Record | None, Record | None]] = []

    def read_all(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], Record]:
        call = f"{self._table}.read"
        rows = {key: self._accesses.read(call, partial(self._get, *key)) for key in dict.fromkeys(keys)}
        return {key: row for key, row in rows.items() if row is not None}

    def page(
        self, namespace: str, *, prefix: str = "", cursor: str | None = None, limit: int = 100
    ) -> RecordPage:
        listing = f"{self._table} {namespace} {prefix}"
        after = cursors.decode_name(listing, cursor, prefix) if cursor is not None else ""
        rows = self._accesses.read(f"{self._table}.page", lambda: dict(self._namespaces.get(namespace, {})))
        found = sorted(name for name in rows if name.startswith(prefix) and name > after)
        records = [rows[name] for name in found[:limit] if rows[name].lives(self._clock.now())]
        more = cursors.encode(listing, found[limit - 1]) if len(found) > limit else None
        return RecordPage(records, more)

    def put(
        self,
        namespace: str,
        name: str,
        value: Mapping[str, Any],
        *,
        expires_at: int,
        if_version: int | None = None,
    ) -> tuple[Record | None, bool]:
        def write() -> tuple[Record | None, bool]:
            old = self._namespaces.get(namespace, {}).get(name)
            version = old.version if old and old.lives(self._clock.now()) else 0
            if if_version is not None and version != if_version:
                self._accesses.refused[f"{self._table}.put"] += 1
                return self._get(namespace, name), False
            before = old.version if old else self._clock.now()
            self._write(namespace, Record(name, _stored(value), before + 1, expires_at))
            return self._get(namespace, name), True

        return self._accesses.write(f"{self._table}.put", write)

    def put_all(self, namespace: str, values: Mapping[str, Mapping[str, Any]], *, expires_at: int) -> None:
        for name, value in values.items():
            new = Record(name, _stored(value), 1, expires_at)
            self._accesses.write(f"{self._table}.put", partial(self._write, namespace, new))

    def delete(self, namespace: str, name: str, *, if_version: int | None = None) -> bool:
        def write() -> bool:
            old = self._get(namespace, name)
            if old is None or if_version not in {None, old.version}:
                self._accesses.refused[f"{self._table}.delete"] += 1
                return False
            del self._namespaces[namespace][name]
            self.changes.append((namespace, old, None))
            return True

        return self._accesses.write(f"{self._table}.delete", write)

    def _write(self, namespace: str, new: Record) -> None:
        rows = self._namespaces.setdefault(namespace, {})
        self.changes.append((namespace, rows.get(new.name), new))
        rows[new.name] = new

    def _get(self, namespace: str, name: str) -> Record | None:
        record = self._namespaces.get(namespace, {}).get(name)
        return record if record and record.lives(self._clock.now()) else None


def _stored(value: Mapping[str, Any]) -> dict[str, Any]:
    """A value as it comes back from a table: a copy, of what JSON knows."""
    stored: dict[str, Any] = json.loads(json.dumps(value))
    return stored
