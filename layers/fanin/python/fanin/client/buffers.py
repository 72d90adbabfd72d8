"""The two ends of a bounded buffer: a producer, which waits for room, and a taker, which waits for work."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from math import inf

from fanin.adapters.backoff import Backoff
from fanin.app.api import Buffers
from fanin.domain.buffer import Accepted, FailedWork, Released, Work
from fanin.domain.limits import MAX_REASON, MAX_WAIT
from fanin.errors import ItemFailed, LimitReached

logger = logging.getLogger("fanin")

ROOM_WAITS = Backoff(base=0.5, cap=10.0)
"""Waits of a producer after each rejection, by default."""


@dataclass(frozen=True, eq=False)
class Producer:
    """Puts work into a bounded buffer, and waits while the buffer is full: back-pressure.

    Waits have jitter, grow with each rejection, and are at least as long as the service asks for. So any
    number of producers slow down to the pace of the consumers.

        >>> from fanin import Tracker
        >>> tracker = Tracker.in_memory()
        >>> buffer = tracker.buffers.define("renders", 100)
        >>> tracker.producer("renders").put("page 1", "page 2").outcome
        <PutOutcome.WAITING: 'waiting'>

    Attributes:
        buffers: the service, ``tracker.buffers``.
        name: name of the buffer.
        backoff: waits after each rejection.
        now: tells the time in seconds, monotonic.
    """

    buffers: Buffers
    name: str
    _: KW_ONLY
    backoff: Backoff | None = None
    now: Callable[[], float] = time.monotonic

    def put(self, *payloads: str, timeout: float | None = None, key: str | None = None) -> Accepted:
        """Put work in, either all of it or none, waiting while there is no room.

        Args:
            payloads: 1 to 10 texts, together at most 200 KB.
            timeout: most seconds to wait; None waits for as long as it takes.
            key: idempotency key of these payloads: a repeat puts nothing in twice.

        Raises:
            LimitReached: there was no room within the timeout.
            BufferNotFound: the buffer does not exist.
        """
        backoff = self.backoff or ROOM_WAITS
        give_up = self.now() + (inf if timeout is None else timeout)
        attempt = 0
        while True:
            try:
                return self.put_now(*payloads, key=key)
            except LimitReached as error:
                left = give_up - self.now()
                if left <= 0:
                    raise
                backoff.sleep(min(backoff.delay(attempt, error.retry_after), left))
                attempt += 1

    def put_now(self, *payloads: str, key: str | None = None) -> Accepted:
        """Put work in, or fail if there is no room; the arguments are those of ``put``.

        Raises:
            LimitReached: there is no room; ``retry_after`` says when to try again.
            BufferNotFound: the buffer does not exist.
        """
        return self.buffers.put(self.name, payloads, key=key)


@dataclass(frozen=True, eq=False)
class Taker:
    """Takes work out of a bounded buffer, and makes room for more when the work is done.

    ::

        tracker.taker("renders").run(render)

    Attributes:
        buffers: the service, ``tracker.buffers``.
        name: name of the buffer.
        most: most payloads to take in one call, 1 to 10.
        wait: seconds for which a call waits for work, 0 to 20.
        visibility_timeout: seconds until work that is not done comes again; None leaves it to the queue.
    """

    buffers: Buffers
    name: str
    _: KW_ONLY
    most: int = 10
    wait: int = MAX_WAIT
    visibility_timeout: int | None = None

    def take(self) -> Sequence[Work]:
        """Take work; the answer is empty if none came in time.

        Raises:
            BufferNotFound: the buffer does not exist.
        """
        return self.buffers.take(
            self.name, most=self.most, wait=self.wait, visibility_timeout=self.visibility_timeout
        )

    def done(self, *work: Work) -> Released:
        """Report work as done, which makes room for as much."""
        return self.buffers.done(self.name, [one.receipt for one in work])

    def fail(self, work: Work, reason: str) -> Released:
        """Give work up, which makes room, too; it does not come again.

        The payload is dropped. The buffer's batch lists the failure with its reason.

        Args:
            work: as it was taken.
            reason: why, for people; cut after 1,024 characters.
        """
        return self.buffers.done(self.name, [], failures=[_failed(work, reason)])

    def run(self, handle: Callable[[str], object], *, until_empty: bool = False) -> int:
        """Take and handle work, payload by payload, and report it as done after each take.

        If ``handle`` raises ``ItemFailed``, the work is given up: it does not come again. After any other
        error it comes again. The rest of the take is handled first, so a payload that always fails holds up
        no other; then the first error is raised here, and further ones are logged.

        Args:
            handle: does the work of one payload.
            until_empty: stop when there is no work; by default this never stops.

        Returns:
            How many payloads are done, those that were given up included.
        """
        total = 0
        while (taken := self.take()) or not until_empty:
            total += self._handle_all(taken, handle)
        return total

    def _handle_all(self, taken: Sequence[Work], handle: Callable[[str], object]) -> int:
        """Handle the work of one take, report it, and raise the first error of a handler."""
        done: list[str] = []
        failures: list[FailedWork] = []
        first: Exception | None = None
        try:
            for work in taken:
                try:
                    handle(work.payload)
                except ItemFailed as failed:
                    failures.append(_failed(work, failed.reason))
                except Exception as error:  # the other work must not wait for this
                    if first is not None:
                        logger.exception("another payload of buffer %s failed and comes again", self.name)
                    first = first or error
                else:
                    done.append(work.receipt)
        finally:  # also if the process is told to end
            freed = self.buffers.done(self.name, done, failures=failures).done if done or failures else 0
        if first is not None:
            raise first
        return freed


def _failed(work: Work, reason: str) -> FailedWork:
    return FailedWork(work.receipt, reason[:MAX_REASON])
