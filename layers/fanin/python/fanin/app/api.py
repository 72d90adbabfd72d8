"""What one can ask of fanin: a Protocol for each of its six services, and ``Fanin``, which has them all.

The use cases implement them over ports, the library over HTTPS; whoever calls them need not know which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from fanin.domain.acks import Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.buffer import Accepted, Buffer, BufferPage, Level, Released, Work
from fanin.domain.directory import Register, Registration, Registrations
from fanin.domain.frames import DEFAULT_LEASE, Claim, Frame, OpenFrame, Ticket
from fanin.domain.ids import Group
from fanin.domain.limits import MAX_WAIT
from fanin.domain.reports import Batches, Expired, Failures, Missing, Progress, Verdict
from fanin.domain.routing import PutEvent, PutRoute, Route, Routes, Sent
from fanin.domain.scatter import (
    ClaimCheck,
    ClaimCheckRequest,
    FailedRecipients,
    Gathered,
    MissingRecipients,
    Reply,
    ReplyReceipt,
    Scatter,
    Scattered,
)


class Ledger(Protocol):
    """Everything one can ask of fanin about batches, over HTTPS or straight on the tables.

    Every call may be repeated. All raise the errors of ``fanin.errors``; ``BatchNotFound``, ``BatchGone``
    and ``Throttled`` can come from any call that names a batch, ``InvalidRequest`` from any call at all.
    """

    def open(self, request: OpenBatch, *, key: str | None = None) -> Batch:
        """Open a batch; with a key, at most one for each key, which is kept for the batch's lifetime.

        A repeat with the key returns the same batch as it is now.

        Raises:
            IdempotencyKeyReused: the key was used with another request.
            BatchGone: the batch of the key was removed.
        """
        ...

    def add(self, batch_id: int, count: int, *, key: str | None = None) -> Group:
        """Add ``count`` items (1 to 2^32 - 1) to an open batch; with a key, at most once for each key.

        Raises:
            BatchClosed: the batch takes no more items.
            LimitReached: the batch is bounded, and full.
            IdempotencyKeyReused: the key was used with another count.
        """
        ...

    def ack(
        self,
        items: Sequence[str] = (),
        *,
        ranges: Sequence[ItemRange] = (),
        counts: Sequence[Count] = (),
    ) -> list[Receipt]:
        """Mark items done, of any number of batches; all ids are checked before anything is written."""
        ...

    def fail(self, failures: Sequence[Failure]) -> list[Receipt]:
        """Mark items done as failed, each with a reason."""
        ...

    def close(self, batch_id: int) -> Batch:
        """Take no more items; completes the batch at once if all are done."""
        ...

    def cancel(self, batch_id: int) -> Batch:
        """End a batch that nobody wants any more; a batch that has ended stays as it is."""
        ...

    def status(self, batch_id: int, *, exact: bool = False) -> Progress:
        """Where the batch is: bounds of the items done from at most 66 reads, or their exact count."""
        ...

    def missing(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Missing:
        """Ranges of items not done, ascending; a page may be short, only a None cursor is the end."""
        ...

    def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Failures:
        """Failed items, by ordinal; a page may be short, only a None cursor is the end."""
        ...

    def verify(self, batch_id: int, *, cursor: str | None = None, repair: bool = True) -> Verdict:
        """Recompute the verdict from the leaves up, report what disagrees, and put it right."""
        ...

    def list(self, state: State, *, cursor: str | None = None, limit: int = 100) -> Batches:
        """Batches of one state."""
        ...

    def expire(self, state: State, *, idle_since: int) -> Expired:
        """Orphan the live batches of a state without activity since then (ms); remove ended ones."""
        ...

    def remove(self, batch_id: int) -> Expired:
        """Remove one ended batch: it reads as gone from now on.

        Raises:
            InvalidRequest: the batch is live.
        """
        ...


class Scatters(Protocol):
    """Everything one can ask of fanin about scatters.

    Errors are those of ``Ledger``, and what is named here.
    """

    def start(self, scatter: Scatter, *, key: str | None = None) -> Scattered:
        """Send a message to many.

        Args:
            scatter: what to send to whom.
            key: idempotency key: a repeat with it finds the same scatter, and finishes its start if need be.
                Without one, a repeat starts another.

        Raises:
            IdempotencyKeyReused: the key was used for another request.
            BatchGone: the scatter of the key is past its lifetime.
            NotRegistered: a recipient is named by a registration that is not there.
            CorrelationIdAlive: a scatter of that correlation id has not ended.
            ChannelRefused: a recipient is not a queue that fanin may send to.
            RequestTooLarge: too many recipients, or too large a message.
        """
        ...

    def status(self, batch_id: int) -> Scattered:
        """How far it is, counted exactly."""
        ...

    def replies(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Gathered:
        """The replies so far, in the order of the recipients; at most 100 a page, fewer if they are large."""
        ...

    def missing_recipients(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> MissingRecipients:
        """Recipients that have neither replied nor failed, in their order; at most 100 a page.

        To see every recipient at least once while replies come in, read the missing ones first, then the
        failed ones, then the replies. None are missing while the recipients of a large topic are still being
        listed.

        Raises:
            InvalidRequest: the cursor is not one that this call gave.
        """
        ...

    def failed_recipients(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> FailedRecipients:
        """Recipients that failed, in their order, each with the reason; at most 100 a page."""
        ...

    def reply(self, replies: Sequence[Reply]) -> list[ReplyReceipt]:
        """Take up to 100 replies. Of each recipient the first counts; a repeat does no harm.

        Raises:
            InvalidItemId: an item was not issued by this service.
            RequestTooLarge: a payload is too large; claim it.
        """
        ...

    def claim(self, request: ClaimCheckRequest) -> ClaimCheck:
        """Where to upload a payload that is too large for a reply."""
        ...


class Frames(Protocol):
    """Everything that senders and receivers ask of frames."""

    def open(self, request: OpenFrame) -> Frame:
        """Ask for a frame.

        Raises:
            ChannelRefused: the reply channel is not a queue that fanin may use.
        """
        ...

    def status(self, frame_id: int, *, cursor: str | None = None, limit: int = 100) -> Frame:
        """A frame and a page of what is missing.

        Raises:
            BatchNotFound: there is no such frame.
            BatchGone: it is past its lifetime.
        """
        ...

    def claim(self, tickets: Sequence[Ticket], *, lease: int = DEFAULT_LEASE) -> list[Claim]:
        """Ask for up to 1,000 envelopes, each for ``lease`` seconds; one answer for each, in order.

        Raises:
            BatchNotFound: there is no such frame.
            BatchGone: it is past its lifetime.
        """
        ...


class Buffers(Protocol):
    """Everything one can ask of bounded buffers."""

    def define(self, name: str, limit: int, *, queue: str | None = None) -> Buffer:
        """Make a buffer, or change its limit; a repeat changes nothing.

        A buffer whose limit changes drains first: puts are rejected until all that is in it is done.

        Args:
            name: 1 to 48 letters, digits, ``-`` and ``_``.
            limit: most work that may be pending at a time.
            queue: URL or ARN of a queue with the tag ``fanin:channel``; by default the service makes one.

        Raises:
            InvalidRequest: the buffer has another queue.
            ChannelRefused: there is no such queue, or it does not carry the tag.
        """
        ...

    def delete(self, name: str) -> None:
        """Drop a buffer and all work in it, with its queue if the service made it; may be repeated."""
        ...

    def status(self, name: str) -> Level:
        """How full a buffer is: its slots exactly, who has what approximately.

        Raises:
            BufferNotFound: there is no such buffer.
        """
        ...

    def put(self, name: str, payloads: Sequence[str], *, key: str | None = None) -> Accepted:
        """Put work in, all of it or none.

        Args:
            name: of the buffer.
            payloads: 1 to 10 texts, together at most 200 KB.
            key: makes a repeat return the same items; it also sends their messages again, for work that is
                not done. It costs one write more.

        Raises:
            LimitReached: there was no room, with the pending work counted at that moment.
            ChannelRefused: the queue is gone, or cannot be sent to.
            Throttled: the queue was busy; nothing was put, unless there is a key: then repeat it.
        """
        ...

    def take(
        self, name: str, *, most: int = 1, wait: int = MAX_WAIT, visibility_timeout: int | None = None
    ) -> Sequence[Work]:
        """Take work out, to be given back with ``done``; what is not comes again.

        Args:
            name: of the buffer.
            most: 1 to 10.
            wait: seconds to wait for work if there is none, at most 20.
            visibility_timeout: seconds until the work comes again; by default the queue's own.
        """
        ...

    def done(self, name: str, tokens: Sequence[str]) -> Released:
        """Give back the slots of work that is done; a late receipt is not an error.

        Args:
            name: of the buffer.
            tokens: receipts of ``take``, at most 100.

        Raises:
            InvalidRequest: a receipt is not one that ``take`` gave; nothing was given back.
        """
        ...

    def list(self, *, cursor: str | None = None, limit: int = 100) -> BufferPage:
        """One page of the buffers, by name."""
        ...


class Directory(Protocol):
    """Everything one can ask of the directory of instances."""

    def register(self, request: Register) -> Registration:
        """Register an instance, or renew its lease, or move it to another channel or other attributes.

        Raises:
            InvalidRequest: a name, an attribute or the lease is out of its bounds.
            ChannelRefused: there is no such queue, or it does not carry the tag.
            Throttled: others keep changing the same registration; try again.
        """
        ...

    def deregister(self, topic: str, name: str) -> bool:
        """End a registration; False if there was none, which is not an error."""
        ...

    def get(self, topic: str, name: str) -> Registration:
        """Read a registration.

        Raises:
            NotRegistered: nobody is registered by that name, or the lease is over.
        """
        ...

    def page(
        self,
        topic: str,
        *,
        attributes: Mapping[str, str] | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Registrations:
        """List a topic by name, only those that have all the attributes.

        Raises:
            InvalidRequest: the cursor is not one this listing gave.
        """
        ...

    def members(self, topic: str, attributes: Mapping[str, str] | None = None) -> Iterator[Registration]:
        """All registrations of a topic that have all the attributes, by name, read a page at a time."""
        ...


class Routing(Protocol):
    """Everything one can ask of content-based routing."""

    def put(self, request: PutRoute) -> Route:
        """Make or change a route.

        Raises:
            InvalidRequest: a name is malformed, or EventBridge does not take the pattern.
            LimitReached: the bus has as many rules as it may have.
        """
        ...

    def delete(self, name: str) -> bool:
        """Delete a route; False if there was none, which is not an error."""
        ...

    def get(self, name: str) -> Route:
        """Read a route.

        Raises:
            RouteNotFound: there is no route of that name.
        """
        ...

    def page(self, *, cursor: str | None = None, limit: int = 100) -> Routes:
        """List the routes by name.

        Raises:
            InvalidRequest: the cursor is not one this listing gave.
        """
        ...

    def publish(self, event: PutEvent) -> Sent:
        """Put an event on the bus, with a correlation id in its detail.

        Raises:
            InvalidRequest: the source is fanin's or AWS's own, or a value is out of its bounds.
            Throttled, ServiceUnavailable: the bus did not take it; try again.
        """
        ...


class Fanin(Protocol):
    """All of fanin: six services. ``Services`` implements it over ports, ``HttpsServices`` over HTTPS."""

    @property
    def ledger(self) -> Ledger:
        """Batches and acknowledgements."""
        ...

    @property
    def scatters(self) -> Scatters:
        """Scatter-gather."""
        ...

    @property
    def frames(self) -> Frames:
        """Guaranteed delivery."""
        ...

    @property
    def buffers(self) -> Buffers:
        """Bounded buffers."""
        ...

    @property
    def directory(self) -> Directory:
        """Who listens where."""
        ...

    @property
    def routing(self) -> Routing:
        """Which events go to whom."""
        ...
