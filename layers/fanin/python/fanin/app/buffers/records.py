"""The records of buffers in the directory table: what each is, and which consumers wait for its work."""

import re
from contextlib import suppress
from typing import Any, Final, NamedTuple

from fanin import names
from fanin.app.fresh import Fresh
from fanin.app.ports import Ports
from fanin.app.ports.records import FOREVER, Record
from fanin.domain import limits
from fanin.domain.buffer import Buffer, BufferPage
from fanin.domain.paging import pages
from fanin.errors import BufferNotFound, InvalidRequest, ServiceUnavailable, Throttled
from fanin.wire.patterns import BUFFER

NAMESPACE: Final = "/buffers"
"""In the directory table; names of topics do not contain a slash."""
GRAVE: Final = 3_600
"""Seconds for which the record of a deleted buffer stays: longer than any call works with what it has read.

A slow ``define`` that found no buffer writes its record only if there is none. So does the SDK when it
repeats the write of a ``define`` whose answer was lost. If the buffer has been defined and deleted since, the
record of the deleted one refuses that write; without it the buffer would come back, with a batch that has
ended and a queue that is deleted.
"""


_MORE: Final = 5  # seconds for which the record of a consumer that died outlives its wait
_KEPT: Final = ("renew_at", "retention", "marks", "going", "buried", "born")
"""Fields of an entry that its record has beside those of the buffer."""


def check_name(name: str) -> None:
    """Refuse a name that, after the prefix, is not a valid queue name.

    Raises:
        InvalidRequest: the name is not 1 to 48 letters, digits, ``-`` and ``_``.
    """
    if not re.fullmatch(limits.BUFFER_NAME, name):
        raise InvalidRequest(
            f"{name[:64]!r} is not a name for a buffer; use 1 to 48 letters, digits, - and _"
        )


class WorkEntry(NamedTuple):
    """A buffer's record.

    Attributes:
        buffer: as callers see it.
        renew_at: when its batch must be replaced, ms.
        retention: of the queue when the buffer was defined, seconds; only the pace of marks depends on it.
        marks: (time in ms, how many items the batch had before it), ascending.
        going: whether the buffer is being deleted.
        buried: whether it has been deleted, and the record only keeps its version.
        born: id of its first batch, which tells it from a deleted buffer of the same name.
        version: of the record.
    """

    buffer: Buffer
    renew_at: int
    retention: int
    marks: tuple[tuple[int, int], ...] = ()
    going: bool = False
    buried: bool = False
    born: int = 0
    version: int = 0

    def value(self) -> dict[str, Any]:
        return {**BUFFER.encode(self.buffer), **{name: getattr(self, name) for name in _KEPT}}


def entry_of(record: Record) -> WorkEntry:
    """The entry of a record.

    Raises:
        BufferNotFound: the record cannot be read. It is never replaced, since it may name a batch with work.
    """
    value = dict(record.value)
    try:
        for field in ("limit", "batch_id", "renew_at", "retention"):
            if not isinstance(value[field], int):
                raise TypeError(f"{field} is {value[field]!r} instead of a whole number")  # noqa: TRY301
        kept = {name: value[name] for name in _KEPT}
        kept["marks"] = tuple((at, items) for at, items in kept["marks"])
        return WorkEntry(BUFFER.decode(value), **kept, version=record.version)
    except (KeyError, TypeError, ValueError) as error:
        raise BufferNotFound(
            f"the record of buffer {record.name} cannot be read ({type(error).__name__}: {error});"
            f" restore the row of the directory table with {names.TOPIC}={NAMESPACE} and"
            f" {names.NAME}={record.name}, or remove it and define the buffer again"
        ) from error


class BufferRecords:
    """Reads, writes and remembers the records; and counts the consumers that wait.

    Args:
        ports: the directory and the clock.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._known: Fresh[str, WorkEntry] = Fresh(ports.clock)

    def fresh(self, name: str) -> WorkEntry:
        """The record as this process remembers it, read again if that is not fresh."""
        return self._known.get(name) or self.refresh(name)

    def refresh(self, name: str) -> WorkEntry:
        """The record as it is now.

        Raises:
            BufferNotFound: the buffer does not exist, or is being deleted, or its record cannot be read.
        """
        entry = self.read(name)
        if entry is None or entry.going:
            raise BufferNotFound(f"there is no buffer {name}; define it first, or check the name")
        return entry

    def read(self, name: str) -> WorkEntry | None:
        """The record as it is now, also of a buffer that is being or was deleted; None if there is none."""
        check_name(name)
        record = self._ports.directory.read(NAMESPACE, [name]).get(name)
        return self._remember(name, record)

    def page(self, cursor: str | None, limit: int) -> BufferPage:
        """List the buffers by name; one whose record cannot be read is named, and hides no other."""
        page = self._ports.directory.page(NAMESPACE, cursor=cursor, limit=limit)
        found = [(record.name, _readable(record)) for record in page.records]
        buffers = tuple(entry.buffer for _, entry in found if entry is not None and not entry.going)
        return BufferPage(buffers, page.cursor, tuple(name for name, entry in found if entry is None))

    def owner(self, queue: str, *, other_than: str) -> str | None:
        """The name of another buffer that has a queue; None if there is none. Looks at all buffers."""
        listing = pages(self._ports.directory.page, NAMESPACE, limit=limits.MAX_PAGE)
        for record in (record for page in listing for record in page.records):
            # Not decoded: a record that cannot be read as a whole may still name its queue.
            has = record.value.get("queue") == queue and not record.value.get("buried")
            if has and record.name != other_than:
                return record.name
        return None

    def write(self, entry: WorkEntry, expires_at: int = FOREVER) -> tuple[WorkEntry | None, bool]:
        """Write a record over the version from which it was made.

        The SDK repeats a write whose answer was lost, and others may have written after its first try. So
        *not written* does not say that the write was never there: look at what the record says now.

        Returns:
            The record as it is now, and whether this call wrote it.
        """
        name, value, version = entry.buffer.name, entry.value(), entry.version
        put = self._ports.directory.put
        record, wrote = put(NAMESPACE, name, value, expires_at=expires_at, if_version=version)
        return self._remember(name, record), wrote

    def bury(self, entry: WorkEntry) -> None:
        """Delete a record, unless it has changed since it was read; its version outlives it for a while."""
        until = self._ports.clock.now() // 1000 + GRAVE
        self.write(entry._replace(going=True, buried=True), until)

    def _remember(self, name: str, record: Record | None) -> WorkEntry | None:
        """Remember a record, except of a buffer that takes no more work."""
        entry = None if record is None else entry_of(record)
        if entry is not None and not entry.going:
            return self._known.remember(name, entry)
        self._known.forget(name)
        return entry

    def waiting(self, name: str) -> int:
        """How many consumers are waiting for work of a buffer, up to a hundred."""
        return len(self._ports.directory.page(f"{NAMESPACE}/{name}").records)

    def came(self, name: str, waiter: str, until: int) -> None:
        """Count a consumer of a buffer as waiting from now on, until ``until`` in ms."""
        self._ports.directory.put(f"{NAMESPACE}/{name}", waiter, {}, expires_at=until // 1000 + _MORE)

    def left(self, name: str, waiter: str) -> None:
        """Count it no longer; if that cannot be written, its record expires by itself.

        An error would keep from the consumer the work that it has just received, and such work comes again
        only later, as received once more.
        """
        with suppress(Throttled, ServiceUnavailable):
            self._ports.directory.delete(f"{NAMESPACE}/{name}", waiter)


def _readable(record: Record) -> WorkEntry | None:
    """The entry of a record; None if it cannot be read."""
    with suppress(BufferNotFound):
        return entry_of(record)
    return None
