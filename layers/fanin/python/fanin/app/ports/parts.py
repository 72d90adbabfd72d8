"""The store of parts of items: failures with messages and redrives, results, what was sent, retries."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from fanin.domain import ids

SHARDS: Final = 16
"""Partitions over which large parts of one batch are spread."""
IN_ROW: Final = "row"
"""``FailureRow.kept`` of a failure whose message is in a row."""


def shard(batch_id: int, ordinal: int) -> int:
    """The partition of a large part of an item: a number above all batch ids.

    A partition of DynamoDB takes a thousand write units a second, one for each kilobyte. In the batch's own
    partition, messages of 8 KB could fail no faster than 125 a second.
    """
    return (1 + ordinal % SHARDS) * (ids.MAX_BATCH_ID + 1) + batch_id


class FailureRow(NamedTuple):
    """The note of a failed item. It counts only if the word says that its bit was cleared as failed.

    Attributes:
        ordinal: of the item.
        item: its id, as it was reported.
        reason: why it failed, for people.
        attempts: how often its message was received; 0 if that is not known.
        failed_at: when the note was made, ms; 0 as long as it is not.
        source: URL or ARN of the queue that the message was received from; empty if that is not known.
        kept: where its message is: ``IN_ROW``, a key in the bucket, or empty if it was not kept.
        totals: what the item brings to the totals of its batch when it is released, by name; only of items
            that are held, since those of others are added at once.
        given_up: whether the service gave the item up by itself, and nobody else has failed it.
    """

    ordinal: int
    item: str
    reason: str
    attempts: int = 0
    failed_at: int = 0
    source: str = ""
    kept: str = ""
    totals: tuple[tuple[str, int], ...] = ()
    given_up: bool = False


class ResultRow(NamedTuple):
    """The result of an item. It counts only if the item is done, and did not fail.

    Attributes:
        ordinal: of the item.
        item: its id, as it was acknowledged.
        content: the JSON, in UTF-8; empty if it is in the bucket.
        kept: its key in the bucket; empty if it is in the row.
    """

    ordinal: int
    item: str
    content: bytes = b""
    kept: str = ""


TARGETS: Final = "target/"
"""Begins the names of the records of targets."""
REDRIVE: Final = "redrive/"
"""Begins the names of redrives in stores. What else takes failures has names of its own."""


class Redriven(NamedTuple):
    """Which redrive took a failure.

    Attributes:
        redrive: its name.
        failed_at: of the failure; a later failure of the same item is another one.
        item: the id under which its message is sent, so that one can see what became of it; empty if the
            redrive counts for good, whatever becomes of it.
        lost: items that redrives had added for it, and gave up as another one had it; with spaces between.
    """

    redrive: str
    failed_at: int
    item: str = ""
    lost: str = ""


class SentRow(NamedTuple):
    """The note of items whose messages a queue has accepted: ordinals start ≤ i < stop.

    Attributes:
        queue: URL.
        start: ordinal of the first; with the queue, the key of the note.
        stop: one past the last; it only grows.
        first_at: when the note was first written, ms.
        last_at: when it was last written, ms.
    """

    queue: str
    start: int
    stop: int
    first_at: int
    last_at: int


class KeyRow(NamedTuple):
    """The row of a key of a batch.

    Attributes:
        key: the text.
        ordinal: of its item.
        by: ordinal of the item that has added it; None if anybody else has.
        payload: the digest that came with it; may be empty.
    """

    key: str
    ordinal: int
    by: int | None = None
    payload: str = ""


class RetryRow(NamedTuple):
    """The note of the last attempt at an item that failed and will be repeated.

    Attributes:
        ordinal: of the item.
        attempt: how often the message was received.
        error: why the attempt failed.
        queue: where the message is; empty if that is not known.
        at: when it was noted, ms.
    """

    ordinal: int
    attempt: int
    error: str
    queue: str
    at: int


class PartStore(Protocol):
    """Keeps notes of a batch's items: which failed, were redriven, were sent, and are tried again."""

    def put_sent(self, batch_id: int, row: SentRow, *, expires_at: int) -> None:
        """Note that items were sent, by one conditional write: of two notes with one key the longer stays."""

    def sent(self, batch_id: int, *, upto: int, limit: int) -> tuple[list[SentRow], bool]:
        """List notes of sent items that begin at or before an ordinal, the last first.

        Returns:
            The notes, and whether there are more.
        """

    def keys(self, batch_id: int, keys: Collection[str]) -> dict[str, KeyRow]:
        """Read the rows of keys; those that are no item of the batch are left out."""

    def keys_of(self, batch_id: int, ordinals: Collection[int]) -> dict[int, str]:
        """The keys of items, by ordinal; reads one row for each addition that has some of them."""

    def put_retries(self, batch_id: int, rows: Iterable[RetryRow], *, expires_at: int) -> None:
        """Note failed attempts, unconditionally, in bulk; the last note of an item stays."""

    def retries(self, batch_id: int, ordinals: Collection[int]) -> dict[int, RetryRow]:
        """Read the notes of failed attempts at some items, by ordinal; items without one are left out."""

    def retries_from(self, batch_id: int, start: int, *, limit: int) -> list[RetryRow]:
        """List notes of failed attempts by ordinal, from ``start`` on; items may be done meanwhile."""

    def put_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:
        """Write notes of failed items, one by one: the first note of an item stays.

        It gives way only if it says that the service gave the item up. One that does not say where the
        message is learns that from a later one, with the source and the attempts.
        """

    def update_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:
        """Write notes over earlier ones, one by one; a note that is later stays.

        Whichever note stays, it says where the message is if either does, with the source and the attempts
        that belong to it, so that nobody who fails an item without its message hides the one that was kept.
        """

    def notes(self, batch_id: int, ordinals: Collection[int]) -> dict[int, FailureRow]:
        """Read notes of some items, by ordinal; items without a note are left out."""

    def reasons(self, batch_id: int, ordinals: Collection[int]) -> dict[int, str]:
        """Read the reasons in the notes of some items, by ordinal; items without a note are left out."""
        return {ordinal: note.reason for ordinal, note in self.notes(batch_id, ordinals).items()}

    def failures(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[FailureRow], str | None]:
        """List notes by ordinal.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """

    def notes_between(self, batch_id: int, start: int, stop: int, *, limit: int) -> list[FailureRow]:
        """List notes of the items start ≤ i < stop by ordinal, up to ``limit`` of them."""

    def put_messages(
        self, batch_id: int, messages: Mapping[int, bytes], *, again: bool = False, expires_at: int
    ) -> None:
        """Write messages of failed items, by ordinal, in bulk; up to 350 KB each.

        The first message of an item stays, unless it may fail ``again``: then the last one does.
        """

    def messages(self, batch_id: int, ordinals: Collection[int]) -> dict[int, bytes]:
        """Read messages of failed items; those that are not there are left out."""

    def delete_messages(self, batch_id: int, ordinals: Collection[int]) -> None:
        """Delete messages of failed items; those that are not there are ignored."""

    def put_results(self, batch_id: int, rows: Iterable[ResultRow], *, expires_at: int) -> None:
        """Write results, one by one: the first of an item stays."""

    def results(self, batch_id: int, ordinals: Collection[int]) -> dict[int, ResultRow]:
        """Read the results of some items, by ordinal; items without one are left out."""

    def delete_results(self, batch_id: int, ordinals: Collection[int]) -> None:
        """Delete results of items; those that are not there are ignored."""

    def mark_redriven(
        self, batch_id: int, marks: Mapping[int, Redriven], before: Mapping[int, Redriven], *, expires_at: int
    ) -> set[int]:
        """Take failures for a redrive, each by one write over the mark that was read before, or over none.

        Args:
            batch_id: the batch.
            marks: by ordinal.
            before: the marks that they replace.
            expires_at: time to live, seconds.

        Returns:
            The ordinals that have these marks, from now on or since an earlier try.
        """

    def redriven(self, batch_id: int, ordinals: Collection[int]) -> dict[int, Redriven]:
        """Read which redrive took each failure last; those that none took are left out."""
