"""What the patterns need of the world beyond the ledger; adapters implement it, as ``fanin.app.ports`` says.

The ledger's own use cases call none of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from fanin.domain.scatter import ClaimCheck


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
