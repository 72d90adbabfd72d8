"""The ledger's face: the calls that the HTTP API, the library and the functions share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from fanin.domain.acks import Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.reports import Batches, Expired, Failures, Missing, Progress, Verdict


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


def pages_of(ids: Iterable[str], size: int) -> Iterable[list[str]]:
    """Cut a stream of ids into lists of at most ``size``."""
    page: list[str] = []
    for item in ids:
        page.append(item)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page
