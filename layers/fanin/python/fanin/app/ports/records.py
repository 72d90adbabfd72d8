"""What the use cases need of the store of records: small JSON documents of batches and of the directory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple, Protocol

FOREVER: Final = 253_402_300_799
"""``expires_at`` of a record that shall not expire: the last second of the year 9999."""


class Record(NamedTuple):
    """A small JSON document that belongs to a batch or stands in the directory.

    Attributes:
        name: its key within its namespace.
        value: JSON object.
        version: grows by one with every write.
        expires_at: time to live, seconds; past it the record reads as gone.
    """

    name: str
    value: Mapping[str, Any]
    version: int
    expires_at: int


class RecordPage(NamedTuple):
    """One page of records, by name."""

    records: list[Record]
    cursor: str | None


class Records(Protocol):
    """Keeps JSON documents by namespace and name: a batch's parts, or the directory. Reads are consistent.

    The namespace of a batch is its id in decimal. A record past its time to live counts as absent: it is not
    read, and a put with ``if_version=0`` replaces it.
    """

    def read(self, namespace: str, names: Collection[str]) -> dict[str, Record]:
        """Read records; those that are not there are left out of the answer."""
        ...

    def page(
        self, namespace: str, *, prefix: str = "", cursor: str | None = None, limit: int = 100
    ) -> RecordPage:
        """List records whose names begin with ``prefix``; a page may be short, only a None cursor is the end.

        Raises:
            InvalidRequest: the cursor is not one this listing gave.
        """
        ...

    def put(
        self,
        namespace: str,
        name: str,
        value: Mapping[str, Any],
        *,
        expires_at: int,
        if_version: int | None = None,
    ) -> tuple[Record | None, bool]:
        """Write one record.

        Args:
            namespace: where.
            name: its key there.
            value: JSON object; up to 350 KB.
            expires_at: seconds.
            if_version: None writes anyhow; 0 only if there is none; else only over that version.

        Returns:
            The record as it is after the call (None if there is none), and whether this call wrote it.
        """
        ...

    def put_all(self, namespace: str, values: Mapping[str, Mapping[str, Any]], *, expires_at: int) -> None:
        """Write many records anyhow, in bulk; their version becomes 1."""
        ...

    def delete(self, namespace: str, name: str, *, if_version: int | None = None) -> bool:
        """Delete one record; False if it is not there, or not of that version."""
        ...
