"""The calls of bounded buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from fanin.domain.limits import MAX_WAIT

if TYPE_CHECKING:
    from fanin.domain.buffer import Accepted, Buffer, BufferPage, FailedWork, Level, Released, Work
    from fanin.domain.principals import Principal


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
        ...

    def delete(self, name: str) -> None:
        """Delete a buffer and its work, and the queue if the service created it; safe to repeat."""
        ...

    def status(self, name: str) -> Level:
        """Read how full a buffer is: slots in use (exact) and taken payloads (approximate).

        Raises:
            BufferNotFound: there is no such buffer.
        """
        ...

    def put(
        self,
        name: str,
        payloads: Sequence[str],
        *,
        key: str | None = None,
        caller: Principal | None = None,
    ) -> Accepted:
        """Put work in, all of it or none.

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
        ...

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
        ...

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
        ...

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
        ...

    def list(self, *, cursor: str | None = None, limit: int = 100) -> BufferPage:
        """One page of the buffers, by name."""
        ...
