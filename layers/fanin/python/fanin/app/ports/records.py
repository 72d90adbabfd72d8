"""The store of records, small JSON documents of batches and of the directory; the bucket for large ones."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from fanin.domain.claim_checks import ClaimCheck

FOREVER: Final = 253_402_300_799
"""``expires_at`` of a record that never expires: the last second of the year 9999."""


class Record(NamedTuple):
    """A small JSON document that belongs to a batch or to the directory.

    Attributes:
        name: its key within its namespace.
        value: JSON object.
        version: grows by one with every write. It begins with the time, ms, so that a record that is made
            again has a version that none before it had: a delete or a put that is repeated late misses it.
        expires_at: time to live, seconds since the epoch; past it the record counts as absent.
    """

    name: str
    value: Mapping[str, Any]
    version: int
    expires_at: int

    def lives(self, now: int) -> bool:
        """Whether its time to live is not over at ``now``, in ms."""
        return self.expires_at * 1000 > now


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
        """Read records; missing ones are left out of the result."""
        found = self.read_all([(namespace, name) for name in names])
        return {name: record for (_, name), record in found.items()}

    def read_all(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], Record]:
        """Read records of several namespaces, by namespace and name; missing ones are left out."""

    def page(
        self, namespace: str, *, prefix: str = "", cursor: str | None = None, limit: int = 100
    ) -> RecordPage:
        """List records whose names begin with ``prefix``.

        A page may be short; only a None cursor means the end.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """

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
            namespace: as for ``read``.
            name: its key in the namespace.
            value: JSON object; up to 350 KB.
            expires_at: time to live, seconds since the epoch.
            if_version: None writes unconditionally; 0 only if the record is absent; another number only over
                that version.

        Returns:
            The record as it is after the call (None if absent), and whether this call wrote it.
        """

    def put_all(self, namespace: str, values: Mapping[str, Mapping[str, Any]], *, expires_at: int) -> None:
        """Write many records unconditionally, in bulk; their version becomes 1."""

    def delete(self, namespace: str, name: str, *, if_version: int | None = None) -> bool:
        """Delete one record; False if it is absent, or has another version."""


class ClaimChecks(Protocol):
    """Keeps payloads that are too large for a record; recipients upload them directly."""

    def upload(self, key: str, *, size: int, content_type: str) -> ClaimCheck:
        """A signed URL that accepts one object of exactly this size."""

    def download(self, key: str) -> str:
        """A signed URL that reads the object, valid for 15 minutes."""

    def put(self, key: str, content: bytes) -> None:
        """Store an object; storing it again changes nothing, since its key follows from its content.

        Raises:
            NotConfigured, AccessDenied: this process has no bucket, or may not write to it.
        """

    def put_all(self, contents: Mapping[str, bytes]) -> None:
        """Store objects by their keys, in parallel; raises like ``put``, and some may be stored then."""

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; those that do not exist are ignored."""

    def load(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Read objects, in parallel; those that do not exist are left out."""

    def exists(self, key: str) -> bool:
        """Whether the object was uploaded."""
