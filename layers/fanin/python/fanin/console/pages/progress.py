"""How far the batches of a page are: asked for at the same time, and only where the row does not say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fanin.console.live.samples import Sample
from fanin.console.state import Console, Unreadable
from fanin.domain.batch import Batch, Mode
from fanin.domain.reports import Progress


@dataclass(frozen=True, slots=True)
class Row:
    """A batch in a list.

    Attributes:
        batch: its row.
        done: items that are done, failed ones included; at least so many. None if that cannot be read, such
            as of a batch that was removed since it was listed.
        exact: whether that is their number.
        rate: items a second, as far as this console has watched; None if that is not known.
    """

    batch: Batch
    done: int | None
    exact: bool = True
    rate: float | None = None

    @property
    def pending(self) -> int:
        """Items that are not done; at most so many."""
        return self.batch.items - (self.done or 0)

    @property
    def left(self) -> float | None:
        """Seconds until it is finished at this rate; None if that is not known."""
        if self.done is None or not self.rate or self.batch.state.terminal:
            return None
        return self.pending / self.rate


def rows_of(console: Console, batches: Sequence[Batch]) -> list[Row]:
    """The rows of a list. Live batches are asked how far they are, in parallel."""
    asked = [batch.batch_id for batch in batches if batch.items and not batch.state.terminal]
    answers = console.each(console.fanin.ledger.status, asked)
    found = {one: said for one, said in zip(asked, answers, strict=True) if not isinstance(said, Unreadable)}
    return [_row(console, batch, found.get(batch.batch_id)) for batch in batches]


def sampled(console: Console, progress: Progress) -> Row:
    """The row of a batch that was asked how far it is; its progress is kept as a sample."""
    batch = progress.batch
    sample = Sample(console.now(), progress.done_min, batch.failed, batch.items)
    console.samples.record(batch.batch_id, sample)
    return Row(batch, progress.done_min, progress.exact, console.samples.rate(batch.batch_id))


def _row(console: Console, batch: Batch, progress: Progress | None) -> Row:
    if progress is not None:
        return sampled(console, progress)
    if batch.all_done or not batch.items:
        return Row(batch, batch.items)
    if batch.mode is Mode.ESTIMATED:
        return Row(batch, min(batch.acked, batch.items), exact=False)
    return Row(batch, None)
