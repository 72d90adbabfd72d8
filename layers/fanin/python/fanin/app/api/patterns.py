"""The calls of the patterns: scatter-gather, frames, bounded buffers, the directory and its routing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fanin.domain.limits import DEFAULT_ENVELOPE_LEASE, MAX_PAGE, MAX_WAIT
from fanin.domain.paging import pages

if TYPE_CHECKING:
    from fanin.domain import scatter
    from fanin.domain.access import Principal
    from fanin.domain.buffer import Accepted, Buffer, BufferPage, FailedWork, Level, Released, Work
    from fanin.domain.claim_checks import ClaimCheck, ClaimCheckRequest
    from fanin.domain.directory import (
        PutEvent,
        PutRoute,
        Register,
        Registration,
        Registrations,
        Route,
        Routes,
        Sent,
    )
    from fanin.domain.frames import Claim, Frame, OpenFrame, Ticket


class Scatters(Protocol):
    """Scatter-gather: one message to many recipients, and their replies.

    Calls raise the errors of ``Ledger``, and those named here.
    """

    def start(
        self, scatter: scatter.Scatter, *, key: str | None = None, caller: Principal | None = None
    ) -> scatter.Scattered:
        """Send a message to many.

        Args:
            scatter: what to send to whom.
            key: idempotency key: a repeat with it returns the same scatter, and finishes an interrupted
                start. Without a key, a repeat starts another scatter.
            caller: who asks, as for ``Ledger.open``.

        Raises:
            IdempotencyKeyReused: the key was used for another request.
            BatchGone: the scatter of the key is past its lifetime.
            NotRegistered: a recipient names a registration that does not exist.
            CorrelationIdAlive: a scatter with that correlation id has not ended.
            ChannelRefused: a recipient is not a queue that fanin may send to.
            RequestTooLarge: too many recipients, or too large a message.
        """

    def status(self, batch_id: int) -> scatter.Scattered:
        """Read the scatter with exact counts of replies, failures and missing recipients."""

    def replies(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> scatter.Gathered:
        """The replies so far, in the order of the recipients; at most 100 a page, fewer if they are large."""

    def missing_recipients(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> scatter.MissingRecipients:
        """Recipients that have neither replied nor failed, in their order; at most 100 a page.

        To see every recipient at least once while replies come in, read the missing ones first, then the
        failed ones, then the replies. Nobody is missing while the recipients of a large topic are still being
        listed.

        Raises:
            InvalidRequest: the cursor is not one that this call gave.
        """

    def failed_recipients(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> scatter.FailedRecipients:
        """Recipients that failed, in their order, each with the reason; at most 100 a page."""

    def reply(self, replies: Sequence[scatter.Reply]) -> list[scatter.ReplyReceipt]:
        """Take up to 100 replies. The first reply of each recipient counts; a repeat does no harm.

        Raises:
            InvalidRequest: a reply has both a payload and a claim, its claim was given for another item, or
                nothing was uploaded under it; nothing was stored.
            InvalidItemId: an item was not issued by this service.
            BatchNotFound: the batch of an item does not exist, or is not a scatter.
            RequestTooLarge: there are too many replies, or a payload is too large; upload it with a claim
                check.
        """

    def claim(self, request: ClaimCheckRequest) -> ClaimCheck:
        """Get a signed URL to upload a payload that is too large for a reply; it lives for 15 minutes.

        Raises:
            InvalidRequest: the size is not from 1 byte to 5 GiB, or the content type is not 1 to 256
                characters.
            InvalidItemId: the item was not issued by this service.
            BatchNotFound: the batch of the item does not exist, or is not a scatter.
        """


class Frames(Protocol):
    """Guaranteed delivery of a known number of envelopes."""

    def open(self, request: OpenFrame, *, key: str | None = None, caller: Principal | None = None) -> Frame:
        """Open a frame; with an idempotency key, at most one frame for each key of a caller.

        Raises:
            ChannelRefused: the reply channel is not a queue that fanin may use.
            IdempotencyKeyReused: the key was used with another request.
        """

    def status(self, frame_id: int, *, cursor: str | None = None, limit: int = 100) -> Frame:
        """A frame, and one page of its missing envelopes.

        Raises:
            BatchNotFound: there is no such frame.
            BatchGone: it is past its lifetime.
        """

    def claim(self, tickets: Sequence[Ticket], *, lease: int = DEFAULT_ENVELOPE_LEASE) -> list[Claim]:
        """Claim up to 1,000 envelopes for ``lease`` seconds (1 to 43,200); one answer for each, in order.

        Raises:
            InvalidRequest: the lease or an index is out of bounds, or an envelope is named twice.
            RequestTooLarge: there are more than 1,000 envelopes.
            BatchNotFound: there is no such frame.
            BatchGone: it is past its lifetime.
        """


class Buffers(Protocol):
    """Bounded buffers: queues of work with back-pressure."""

    def define(self, name: str, limit: int, *, queue: str | None = None) -> Buffer:
        """Make a buffer, or change its limit; a repeat changes nothing.

        A buffer whose limit changes drains first: puts are rejected until all work in it is done.

        Args:
            name: 1 to 48 letters, digits, ``-`` and ``_``.
            limit: how many payloads may be pending at a time.
            queue: URL or ARN of a queue with the tag ``fanin:channel``; by default the service makes one.

        Raises:
            InvalidRequest: the buffer has another queue, or another buffer has this one.
            ChannelRefused: the queue does not exist, or does not carry the tag.
        """

    def delete(self, name: str) -> None:
        """Delete a buffer and its work, and the queue if the service created it; safe to repeat."""

    def status(self, name: str) -> Level:
        """Read how full a buffer is: slots in use (exact) and taken payloads (approximate).

        Raises:
            BufferNotFound: there is no such buffer.
        """

    def put(
        self, name: str, payloads: Sequence[str], *, key: str | None = None, caller: Principal | None = None
    ) -> Accepted:
        """Put work in, all of it or none; without a key, a repeat puts it in again.

        Args:
            name: of the buffer.
            payloads: 1 to 10 texts, together at most 200 KB.
            key: idempotency key of these payloads: a repeat puts nothing in twice, and returns the items of
                the put that was answered. It costs up to four more writes.
            caller: who asks, as for ``Ledger.open``.

        Raises:
            InvalidRequest: a payload has characters that SQS does not take.
            IdempotencyKeyReused: the key was used for other payloads.
            LimitReached: the buffer was full, with its pending work counted at that moment.
            ChannelRefused: the queue is gone, or cannot be sent to.
            Throttled: the queue was busy. Without a key nothing was put; with a key, repeat the call.
        """

    def take(
        self, name: str, *, most: int = 1, wait: int = MAX_WAIT, visibility_timeout: int | None = None
    ) -> Sequence[Work]:
        """Take work out. Report it with ``done``; work that is not reported comes again.

        Args:
            name: of the buffer.
            most: 1 to 10.
            wait: seconds to wait for work if the buffer is empty, at most 20.
            visibility_timeout: seconds until the work comes again; by default as the queue is configured.
        """

    def poll(
        self,
        name: str,
        *,
        most: int = 1,
        visibility_timeout: int | None = None,
        waiter: str | None = None,
        waits: int = 0,
    ) -> Sequence[Work]:
        """Take work out if there is some, and do not wait: the caller asks again when it wants to.

        A request that waits on the server keeps a function running, which is billed. So ``take`` over HTTPS
        polls and waits in the client.

        Args:
            name: of the buffer.
            most: 1 to 10.
            visibility_timeout: seconds until the work comes again; by default as the queue is configured.
            waiter: a name of the caller's own, by which it counts as a consumer that waits.
            waits: seconds for which the waiter counts from now on, if it gets no work. 0 leaves the time of
                an earlier poll; the waiter stops counting when it gets work.
        """

    def done(self, name: str, tokens: Sequence[str], *, failures: Sequence[FailedWork] = ()) -> Released:
        """Report work as done or failed, which frees its slots; a late receipt is not an error.

        Failed work does not come again. The buffer's batch lists it among its failures, with the reason.

        Args:
            name: of the buffer.
            tokens: receipts of ``take``; with the failures at most 100.
            failures: work that is given up.

        Raises:
            InvalidRequest: a receipt is not one that ``take`` gave; nothing was freed.
        """

    def list(self, *, cursor: str | None = None, limit: int = 100) -> BufferPage:
        """One page of the buffers, by name."""


class Directory(Protocol):
    """The directory: which instances listen to which topics, and on which queues."""

    def register(self, request: Register) -> Registration:
        """Register an instance, renew its lease, or move it to another channel or other attributes.

        Raises:
            InvalidRequest: a name, an attribute or the lease is out of bounds.
            ChannelRefused: the queue does not exist, or does not carry the tag.
            Throttled: other calls keep changing the same registration; try again.
        """

    def deregister(self, topic: str, name: str) -> bool:
        """End a registration; False if it did not exist, which is not an error."""

    def get(self, topic: str, name: str) -> Registration:
        """Read a registration.

        Raises:
            NotRegistered: no instance is registered by that name, or its lease is over.
        """

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
            InvalidRequest: the cursor is not from this listing.
        """

    def members(self, topic: str, attributes: Mapping[str, str] | None = None) -> Iterator[Registration]:
        """All registrations of a topic that have all the attributes, by name, read a page at a time."""
        for page in pages(self.page, topic, attributes=attributes, limit=MAX_PAGE):
            yield from page.registrations


class Routing(Protocol):
    """Content-based routing: which events go to the registrations of which topic."""

    def put(self, request: PutRoute) -> Route:
        """Make or change a route.

        Raises:
            InvalidRequest: a name is malformed, or EventBridge does not take the pattern.
            LimitReached: the bus has reached its limit of rules.
        """

    def delete(self, name: str) -> bool:
        """Delete a route; False if it did not exist, which is not an error."""

    def get(self, name: str) -> Route:
        """Read a route.

        Raises:
            RouteNotFound: no route has that name.
        """

    def page(self, *, cursor: str | None = None, limit: int = 100) -> Routes:
        """List the routes by name.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """

    def publish(self, event: PutEvent) -> Sent:
        """Put an event on the bus, with a correlation id in its detail; a repeat is another event.

        Raises:
            InvalidRequest: the source is reserved for fanin or AWS, the detail type is one that registers or
                deregisters instances, or a value is out of bounds.
            Throttled, ServiceUnavailable: the bus did not take it; try again.
        """
