"""What the use cases need of the world. Adapters implement these Protocols; nothing here does I/O.

Stores keep three promises. Every write is one conditional write of one row (or, for ``allocate_once``,
one transaction of two rows). Every read is strongly consistent. And a call, save ``allocate`` and
``count``, may be repeated after its answer was lost: it then changes nothing more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from fanin import names
from fanin.domain.batch import Batch, State
from fanin.domain.scatter import ClaimCheck
from fanin.domain.tree import Tree


class WordKey(NamedTuple):
    """Names one word: batch, level, and its number on the level."""

    batch_id: int
    level: int
    number: int


class Clear(NamedTuple):
    """Bits to clear in one word.

    Attributes:
        key: the word.
        mask: the bits; at least one.
        expires_at: time to live of the row, seconds since the epoch.
        failed: also record the cleared bits as failed (level 0 only).
    """

    key: WordKey
    mask: int
    expires_at: int
    failed: bool = False


class Cleared(NamedTuple):
    """The word after a ``Clear``.

    Attributes:
        word: its value now; a bit that is 1 is pending.
        first: the bits that this call cleared; the others were clear before.
    """

    word: int
    first: int


class Claim(NamedTuple):
    """A lease to take on one bit, so that only one works on its item at a time.

    Attributes:
        key: the word, of level 0.
        position: the bit.
        now: seconds; a lease that ends at or before this time is over.
        until: seconds; when the new lease ends.
        expires_at: time to live of the row, seconds.
    """

    key: WordKey
    position: int
    now: int
    until: int
    expires_at: int


class Claimed(NamedTuple):
    """What a ``Claim`` found.

    Attributes:
        pending: whether the bit is still set.
        until: when the lease on it ends that is alive now, whoever holds it; 0 if the bit is clear.
        taken: whether it is the one that this call asked for.
    """

    pending: bool
    until: int
    taken: bool


class WordStore(Protocol):
    """Keeps the words of the trees. A word without a row reads as all ones."""

    def claim(self, claims: Sequence[Claim]) -> list[Claimed]:
        """Take leases on pending bits, each by one conditional write; all are written in parallel.

        Only the leaf word is looked at: a bit that a range has cleared higher up counts as pending.

        Args:
            claims: at most one for each bit.

        Returns:
            One answer for each, in order. A claim whose answer was lost finds its own lease when it is
            repeated, and cannot tell: the item is free again when that lease is over.

        Raises:
            Throttled: the store asked to slow down; some leases may have been taken.
        """
        ...

    def clear(self, clears: Sequence[Clear]) -> list[Cleared]:
        """Clear bits, each word by one conditional write; words are written in parallel.

        A word whose write met bits already clear is written again with the others only, or not at all
        if none is left.

        Args:
            clears: at most one for each word.

        Returns:
            One answer for each, in order.

        Raises:
            Throttled: the store asked to slow down; some words may have been written, so repeat it all.
        """
        ...

    def read(self, keys: Collection[WordKey]) -> dict[WordKey, int]:
        """Read words; those without a row are left out of the answer."""
        ...

    def read_failed(self, keys: Collection[WordKey]) -> dict[WordKey, int]:
        """Read which bits were cleared by a failure, as masks; words without such bits are left out."""
        ...


class Activity(NamedTuple):
    """What activity does to a row's index key; computed by the use case, which knows the idle time.

    Attributes:
        touched_at: becomes the row's ``touched_at``.
        due_at: becomes the row's ``due_at``.
    """

    touched_at: int
    due_at: int


class Page(NamedTuple):
    """One page of batches from the index, oldest ``due_at`` first within a shard."""

    batches: list[Batch]
    cursor: str | None


class BatchStore(Protocol):
    """Keeps the batch rows. Every answer is the row as it is after the call."""

    def create(self, batch: Batch) -> bool:
        """Put a new row; False if another batch has the id (a row with the same salt is this batch)."""
        ...

    def read(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        """Read rows, strongly consistent; unknown ids are left out of the answer."""
        ...

    def allocate(self, batch_id: int, n: int, *, activity: Activity | None, room: int | None) -> Batch | None:
        """Add n items to an open batch, by one conditional write.

        Not idempotent: repeated after its answer was lost, it adds n more (``allocate_once`` does not).

        Args:
            batch_id: the batch.
            n: how many.
            activity: None leaves the index key alone (the caller has not seen the batch yet).
            room: None demands that the batch has no limit; a number demands ``pending_bound`` ≤ room, and
                adds n to it.

        Returns:
            The row after the addition, ``items`` being one past the last new ordinal; None if the
            condition failed (not open, no such batch, full, limit unlike ``room``, or more than 2^40 items).
        """
        ...

    def allocate_once(self, batch: Batch, n: int, key: str, *, activity: Activity) -> int | None:
        """Add n items under an idempotency key, by one transaction of two rows.

        The row must still have ``batch.items`` items and be open; for a bounded batch ``pending_bound``
        must leave room for n. The key's row keeps the range, also after the batch has closed.

        Returns:
            First ordinal of the range that the key stands for, from this call or an earlier one; None if
            the batch has changed since it was read (or is full), and the caller should read it again.

        Raises:
            IdempotencyKeyReused: the key was used before with another n.
        """
        ...

    def allocate_counted(
        self, batch_id: int, n: int, *, items: int, pending: int, activity: Activity
    ) -> Batch | None:
        """Add n items to an open, bounded batch whose pending items were counted, by one conditional write.

        Not idempotent, as ``allocate``.

        Args:
            batch_id: the batch.
            n: how many.
            items: the row must still have so many.
            pending: the count; ``pending_bound`` becomes this and n.
            activity: of the addition.

        Returns:
            The row after the addition; None if the condition failed.
        """
        ...

    def rebound(self, batch_id: int, *, items: int, pending: int) -> bool:
        """Store a fresh count of pending items, if ``items`` has not changed since; False if it has."""
        ...

    def close(
        self, batch_id: int, *, now: int, activity: Activity | None = None
    ) -> tuple[Batch | None, bool]:
        """Move an open batch to closed; ``now`` becomes ``closed_at``.

        Returns:
            The row (None if unknown), and whether this call moved it.
        """
        ...

    def end(
        self,
        batch_id: int,
        state: State,
        *,
        now: int,
        sources: Collection[State],
        partial: bool = False,
        touched_at: int | None = None,
    ) -> tuple[Batch | None, bool]:
        """Move a batch to a terminal state.

        Args:
            batch_id: the batch.
            state: the terminal state.
            now: becomes ``ended_at``.
            sources: states it may move from.
            partial: recorded with the move.
            touched_at: if given, the row's must still be this (the reaper's guard against activity).

        Returns:
            The row (None if unknown), and whether this call moved it.
        """
        ...

    def put_off(
        self, batch_id: int, *, deadline: int, until: int, activity: Activity
    ) -> tuple[Batch | None, bool]:
        """Move the deadline of a live batch from ``deadline`` to ``until``, and count the retry.

        Returns:
            The row (None if unknown), and whether this call moved it.
        """
        ...

    def touch(self, batch_id: int, activity: Activity) -> None:
        """Record activity on a live batch; nothing if it has ended or was touched later than that."""
        ...

    def count(self, batch_id: int, n: int, *, activity: Activity | None) -> Batch | None:
        """Add n to ``acked`` of a live batch that counts, estimated or a scatter; None if there is none."""
        ...

    def page(
        self, state: State, *, due_before: int | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page:
        """List batches of one state through the index (eventually consistent), one shard after the other.

        A page may be short, since rows that have left the state are dropped; only a None cursor is the end.

        Raises:
            InvalidRequest: the cursor is not one this method gave for this state.
        """
        ...

    def expire(self, batch_id: int, *, now: int) -> bool:
        """Make an ended batch read as gone from now on, by its time to live; False if there is none."""
        ...


class FailureRow(NamedTuple):
    """The note of a failed item; it counts only if the word says that the bit was cleared as failed."""

    ordinal: int
    item: str
    reason: str


class PartStore(Protocol):
    """Keeps rows that belong to a batch besides its words."""

    def put_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:
        """Write notes of failed items, unconditionally, in bulk."""
        ...

    def failures(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[FailureRow], str | None]:
        """List notes by ordinal.

        Raises:
            InvalidRequest: the cursor is not one this method gave.
        """
        ...


class Record(NamedTuple):
    """A small JSON document that belongs to a batch or stands in the directory.

    Attributes:
        name: its key within its room.
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
    """Keeps JSON documents by room and name: a batch's parts, or the directory. Reads are consistent.

    A room of a batch is its id in decimal. A record past its time to live is as good as not there: it is
    not read, and a put ``if_version=0`` replaces it.
    """

    def read(self, room: str, names: Collection[str]) -> dict[str, Record]:
        """Read records; those that are not there are left out of the answer."""
        ...

    def page(self, room: str, *, prefix: str = "", cursor: str | None = None, limit: int = 100) -> RecordPage:
        """List records whose names begin with ``prefix``; a page may be short, only a None cursor is the end.

        Raises:
            InvalidRequest: the cursor is not one this listing gave.
        """
        ...

    def put(
        self,
        room: str,
        name: str,
        value: Mapping[str, Any],
        *,
        expires_at: int,
        if_version: int | None = None,
    ) -> tuple[Record | None, bool]:
        """Write one record.

        Args:
            room: where.
            name: its key there.
            value: JSON object; up to 350 KB.
            expires_at: seconds.
            if_version: None writes anyhow; 0 only if there is none; else only over that version.

        Returns:
            The record as it is after the call (None if there is none), and whether this call wrote it.
        """
        ...

    def put_all(self, room: str, values: Mapping[str, Mapping[str, Any]], *, expires_at: int) -> None:
        """Write many records anyhow, in bulk; their version becomes 1."""
        ...

    def delete(self, room: str, name: str, *, if_version: int | None = None) -> bool:
        """Delete one record; False if it is not there, or not of that version."""
        ...


class Outgoing(NamedTuple):
    """A message for a channel.

    Attributes:
        channel: queue URL.
        body: text.
        attributes: string attributes, at most ten.
    """

    channel: str
    body: str
    attributes: Mapping[str, str]


class Channels(Protocol):
    """The queues of others: those that registered, that are scattered to, that want replies."""

    def resolve(self, channel: str) -> str:
        """The URL of a queue, given by URL or ARN, if fanin may use it.

        Raises:
            ChannelRefused: there is no such queue, or it does not carry the tag ``fanin:channel``.
        """
        ...

    def send(self, messages: Sequence[Outgoing]) -> list[str | None]:
        """Send messages in parallel, batched by queue.

        Returns:
            For each message None, or why its queue will never take it.

        Raises:
            Throttled: some were not taken in all tries; send all again.
        """
        ...


class Jobs(Protocol):
    """The queue of the worker that sends a scatter's messages."""

    def send(self, messages: Iterable[Mapping[str, object]]) -> None:
        """Put jobs on the queue; raises Throttled if some were not taken, and all may be sent again."""
        ...


class ClaimChecks(Protocol):
    """Keeps payloads that are too large for a record; who replies uploads them itself."""

    def upload(self, key: str, *, size: int, content_type: str) -> ClaimCheck:
        """Let the bearer of the answer put one object of exactly this size."""
        ...

    def download(self, key: str) -> str:
        """A URL that reads the object for a quarter of an hour."""
        ...

    def exists(self, key: str) -> bool:
        """Whether the object was uploaded."""
        ...


class Received(NamedTuple):
    """A message received from a queue, hidden from others for a while.

    Attributes:
        handle: of this delivery, to remove the message by.
        body: text.
        attributes: string attributes.
        sent_at: when it was sent, ms.
    """

    handle: str
    body: str
    attributes: Mapping[str, str]
    sent_at: int


class QueueState(NamedTuple):
    """What a queue says of itself.

    Attributes:
        retention: seconds after which it drops a message.
        hidden: messages received and not removed, approximately.
    """

    retention: int
    hidden: int


class Queues(Protocol):
    """The queues of buffers: made by the service, or others that carry the channel tag."""

    def create(self, name: str) -> str:
        """Make the queue of a buffer, and return its URL; one being there is no error.

        Raises:
            Throttled: it was deleted less than a minute ago.
        """
        ...

    def delete(self, queue: str) -> None:
        """Delete a queue; none being there is no error."""
        ...

    def receive(self, queue: str, *, most: int, wait: int, hide: int | None) -> list[Received]:
        """Receive messages, waiting for the first.

        Args:
            queue: URL.
            most: messages, at most 10.
            wait: seconds.
            hide: seconds; None for the queue's own.

        Raises:
            ChannelRefused: the queue is gone, or cannot be received from.
        """
        ...

    def remove(self, queue: str, handles: Sequence[str]) -> None:
        """Remove messages; what is gone already, or was received again by others, is left alone."""
        ...

    def state(self, queue: str) -> QueueState:
        """Ask a queue for its state; raises ChannelRefused like ``receive``."""
        ...


class Timers(Protocol):
    """One-time alarms that call the timer function with a batch id."""

    def set(self, batch_id: int, at: int) -> None:
        """Set the alarm of a batch, ``at`` in ms; setting it again is no error."""
        ...

    def clear(self, batch_id: int) -> None:
        """Delete it; none being there is no error."""
        ...


class Event(NamedTuple):
    """An event for the bus.

    Attributes:
        id: deterministic, ``<batch>.<state>``, so that a consumer can drop a repeat.
        detail_type: such as ``Batch Completed``.
        detail: JSON object.
        time: ms since the epoch.
        source: who says it; an event of others carries no id of ours.
    """

    id: str
    detail_type: str
    detail: Mapping[str, object]
    time: int
    source: str = names.EVENT_SOURCE


class Events(Protocol):
    """The bus."""

    def publish(self, event: Event) -> str:
        """Put one event, and return the id that the bus gave it.

        Raises:
            Throttled, ServiceUnavailable: the bus did not take it.
        """
        ...


class Rules(Protocol):
    """The bus's rules, one for each route: an event that matches the pattern reaches the router."""

    def matches(self, pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
        """Whether an event, as EventBridge delivers it, matches a pattern.

        Raises:
            InvalidRequest: the pattern is none that EventBridge takes.
        """
        ...

    def put(self, route: str, pattern: Mapping[str, Any]) -> None:
        """Make or change the rule of a route.

        Raises:
            InvalidRequest: the pattern is none that EventBridge takes.
            LimitReached: the bus has as many rules as it may have.
        """
        ...

    def delete(self, route: str) -> None:
        """Delete the rule of a route; none being there is no error."""
        ...


class Clock(Protocol):
    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...


class Random(Protocol):
    def bits(self, n: int) -> int:
        """A random integer of n bits."""
        ...

    def bytes(self, n: int) -> bytes:
        """N unpredictable bytes."""
        ...


@dataclass(frozen=True)
class Defaults:
    """Values for what a caller leaves open; durations in seconds.

    Attributes:
        open_idle_ttl: of batches that are open.
        closed_idle_ttl: of batches that are closed.
        lifetime: of batches.
        reply_to: URL of the queue that the messages of scatters name for replies; empty for none.
    """

    open_idle_ttl: int = 2 * 3600
    closed_idle_ttl: int = 7 * 86_400
    lifetime: int = 30 * 86_400
    reply_to: str = ""


@dataclass(frozen=True)
class Ports:
    """Everything a use case may call, and the shape of the tree."""

    batches: BatchStore
    words: WordStore
    parts: PartStore
    timers: Timers
    events: Events
    records: Records
    directory: Records
    channels: Channels
    queues: Queues
    rules: Rules
    jobs: Jobs
    claims: ClaimChecks
    clock: Clock
    random: Random
    defaults: Defaults = Defaults()
    tree: Tree = Tree()
