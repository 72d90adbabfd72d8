"""The Protocols of the services: the calls that the HTTP API, the library and the functions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fanin.domain.acks import Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.reports import Batches, Expired, Failures, Missing, Progress, Verdict
from fanin.domain.scatter import (
    ClaimCheck,
    ClaimCheckRequest,
    Gathered,
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


class Scattering(Protocol):
    """Everything one can ask of fanin about scatters, over HTTPS or straight on the tables.

    Errors are those of ``fanin.app.api.Ledger``, and what is named here.
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
            ChannelRefused: a recipient is no queue that fanin may send to.
            RequestTooLarge: too many recipients, or too large a message.
        """
        ...

    def status(self, batch_id: int) -> Scattered:
        """How far it is, counted exactly."""
        ...

    def replies(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Gathered:
        """The replies so far, in the order of the recipients; at most 100 a page, fewer if they are large."""
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
