"""How far the batches of a page are, asked for only where the row does not say it; over time, as a plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fanin.console.samples import Sample
from fanin.console.state import Console
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
    found = dict(console.each(console.fanin.ledger.status, asked))
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


WIDTH: Final = 600
HEIGHT: Final = 100
"""Units of a plot's view box; it is stretched to the space that there is."""
TABLE_ROWS: Final = 40
"""Rows of the table that stands beside a plot for those who cannot see it."""
_NEAR: Final = 0.5
"""If the lowest value of a line is above this share of the highest, its axis does not begin at 0."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line over time.

    Attributes:
        name: ``done`` or ``failed``.
        low: value at the bottom of its axis.
        high: value at the top.
        points: of an SVG polyline.
        first: value at the beginning.
        last: value at the end.
    """

    name: str
    low: int
    high: int
    points: str
    first: int
    last: int

    @property
    def short(self) -> bool:
        """Whether the ends of the axis differ also if they are written with three digits."""
        return self.low == 0 or (self.high - self.low) * 50 >= self.high


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over the same time.

    Attributes:
        lines: what was done; and what failed, if anything did.
        begin: time at the left, ms.
        end: time at the right, ms.
        rows: samples for a table, at most ``TABLE_ROWS``; the oldest first.
    """

    lines: tuple[Line, ...]
    begin: int
    end: int
    rows: tuple[Sample, ...]

    @property
    def middle(self) -> int:
        """The time halfway, ms."""
        return (self.begin + self.end) // 2

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end - self.begin) / 1000


def plot(samples: Sequence[Sample]) -> Plot | None:
    """Lay out the progress of a batch; None if there are no two samples, which make a line.

    Args:
        samples: the oldest first, each at another time.
    """
    if len(samples) < 2:  # noqa: PLR2004
        return None
    lines = [_line("done", samples, [sample.done for sample in samples])]
    if any(failed := [sample.failed for sample in samples]):
        lines.append(_line("failed", samples, failed))
    return Plot(tuple(lines), samples[0].at, samples[-1].at, some(samples, TABLE_ROWS))


def _line(name: str, samples: Sequence[Sample], values: Sequence[int]) -> Line:
    low, high = axis(min(values), max(values))
    begin, passed = samples[0].at, samples[-1].at - samples[0].at
    points = " ".join(
        f"{WIDTH * (sample.at - begin) / passed:.1f},{HEIGHT * (high - at) / (high - low):.1f}"
        for sample, at in zip(samples, values, strict=True)
    )
    return Line(name, low, high, points, values[0], values[-1])


def axis(least: int, most: int) -> tuple[int, int]:
    """Where an axis for these values begins and ends: at round numbers, the first below the second."""
    if least == most or least <= most * _NEAR:
        step = 10 ** max(0, len(str(most)) - 2)
        return 0, max(1, -(-most // step) * step)
    step = 10 ** max(0, len(str(max(1, most - least))) - 1)
    low, high = least // step * step, -(-most // step) * step
    return low, high


def some(samples: Sequence[Sample], most: int) -> tuple[Sample, ...]:
    """At most so many of the samples, evenly chosen, with the first and the last."""
    if len(samples) <= most:
        return tuple(samples)
    last = len(samples) - 1
    return tuple(samples[round(at * last / (most - 1))] for at in range(most))
