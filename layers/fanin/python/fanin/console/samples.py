"""Progress over time, as far as this console has watched it: a bounded number of samples of each batch."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fanin.domain.latest import Latest

POINTS: Final = 240
"""Samples of a batch at most. When there are more, they are thinned out, and later ones lie further apart."""
RATE_MS: Final = 60_000
BATCHES: Final = 256
"""Batches with samples at most; the least recently sampled is forgotten."""


class Sample(NamedTuple):
    """How far a batch was at a time.

    Attributes:
        at: ms since the epoch.
        done: items that were done, failed ones included; at least so many.
        failed: items that had failed; at least so many.
        items: items that the batch had.
    """

    at: int
    done: int
    failed: int
    items: int


@dataclass(slots=True)
class _Series:
    """The samples of one batch, at least ``gap`` ms apart but for the last."""

    gap: int = 0
    kept: list[Sample] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        kept = self.kept
        if kept and sample.at <= kept[-1].at:
            return
        if kept:  # Some are counted and others are bounds, but what is done stays done.
            sample = sample._replace(
                done=max(sample.done, kept[-1].done), failed=max(sample.failed, kept[-1].failed)
            )
        stands = len(kept) > 1 and kept[-2][1:] == kept[-1][1:] == sample[1:]
        if stands or (len(kept) > 1 and kept[-1].at - kept[-2].at < self.gap):
            kept.pop()
        kept.append(sample)
        if len(kept) > POINTS:
            self.gap = 2 * (kept[-1].at - kept[0].at) // POINTS
            earlier, self.kept = kept, []
            for one in earlier:
                self.add(one)


class Samples:
    """Keeps samples of the batches that somebody looks at. Threads share it."""

    def __init__(self) -> None:
        self._of: Latest[int, _Series] = Latest(BATCHES)
        self._lock = threading.Lock()

    def record(self, batch_id: int, sample: Sample) -> None:
        """Keep a sample. While a batch stands still, only the first and the last are kept."""
        with self._lock:
            series = self._of[batch_id] = self._of.get(batch_id) or _Series()
            series.add(sample)

    def of(self, batch_id: int) -> Sequence[Sample]:
        """The samples of a batch, the oldest first."""
        with self._lock:
            series = self._of.get(batch_id)
            return () if series is None else tuple(series.kept)

    def rate(self, batch_id: int) -> float | None:
        """Items a second over the last minute; None if that is not known."""
        samples = self.of(batch_id)
        if not samples:
            return None
        last = samples[-1]
        first = next(sample for sample in samples if sample.at >= last.at - RATE_MS)
        if last.at == first.at and len(samples) > 1:
            first = samples[-2]  # nothing was sampled within that time
        passed = last.at - first.at
        return (last.done - first.done) * 1000 / passed if passed > 0 else None
