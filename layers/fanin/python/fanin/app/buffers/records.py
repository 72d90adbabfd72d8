"""The records of buffers in the directory table: each buffer's queue, batch, limit and marks."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from fanin.app.fresh import Fresh
from fanin.app.ports import Ports
from fanin.app.ports.records import FOREVER, Record
from fanin.domain import limits
from fanin.domain.buffer import Buffer
from fanin.errors import BufferNotFound, InvalidRequest
from fanin.wire.buffers import BUFFER

NAMESPACE: Final = "/buffers"
"""In the directory table; names of topics do not contain a slash."""


def check_name(name: str) -> None:
    """Refuse a name that, after the prefix, is not a valid queue name.

    Raises:
        InvalidRequest: the name is not 1 to 48 letters, digits, ``-`` and ``_``.
    """
    if not re.fullmatch(limits.BUFFER_NAME, name):
        raise InvalidRequest(
            f"{name[:64]!r} is not a name for a buffer; use 1 to 48 letters, digits, - and _"
        )


class Entry(NamedTuple):
    """A buffer's record.

    Attributes:
        buffer: as callers see it.
        renew_at: when its batch must be replaced, ms.
        retention: of the queue when the buffer was defined, seconds; only the pace of marks depends on it.
        marks: (time in ms, how many items the batch had before it), ascending.
        going: whether the buffer is being deleted.
        version: of the record.
    """

    buffer: Buffer
    renew_at: int
    retention: int
    marks: tuple[tuple[int, int], ...] = ()
    going: bool = False
    version: int = 0

    def value(self) -> dict[str, Any]:
        return {
            **BUFFER.encode(self.buffer),
            "renew_at": self.renew_at,
            "retention": self.retention,
            "marks": [list(mark) for mark in self.marks],
            "going": self.going,
        }


def entry_of(record: Record) -> Entry:
    value = dict(record.value)
    return Entry(
        BUFFER.decode(value),
        value["renew_at"],
        value["retention"],
        tuple((at, items) for at, items in value["marks"]),
        value["going"],
        record.version,
    )


class BufferRecords:
    """Reads, writes and remembers the records.

    Args:
        ports: the directory and the clock.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._known: Fresh[str, Entry] = Fresh(ports.clock)

    def fresh(self, name: str) -> Entry:
        """The record as this process remembers it, read again if that is not fresh."""
        return self._known.get(name) or self.refresh(name)

    def refresh(self, name: str) -> Entry:
        """The record as it is now.

        Raises:
            BufferNotFound: the buffer does not exist, or is being deleted.
        """
        check_name(name)
        entry = self.read(name)
        if entry is None or entry.going:
            raise BufferNotFound(f"there is no buffer {name}; define it first, or check the name")
        return entry

    def read(self, name: str) -> Entry | None:
        """The record as it is now, even of a buffer that is being deleted; None if it does not exist."""
        record = self._ports.directory.read(NAMESPACE, [name]).get(name)
        self._known.forget(name)
        return None if record is None else self._remember(entry_of(record))

    def write(self, entry: Entry) -> Entry | None:
        """Write a record over the version from which it was made; None if another process was faster."""
        name = entry.buffer.name
        record, wrote = self._ports.directory.put(
            NAMESPACE, name, entry.value(), expires_at=FOREVER, if_version=entry.version
        )
        self._known.forget(name)
        return self._remember(entry_of(record)) if wrote and record else None

    def _remember(self, entry: Entry) -> Entry:
        return self._known.remember(entry.buffer.name, entry)

    def delete(self, entry: Entry) -> None:
        """Delete a record, if it has not changed since it was read."""
        name = entry.buffer.name
        self._ports.directory.delete(NAMESPACE, name, if_version=entry.version)
        self._known.forget(name)
