"""Progress over time, as far as this console has watched it: a bounded number of samples of each batch."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

POINTS: Final = 240
"""Samples of a batch; of more, every second one is dropped."""
BATCHES: Final = 256
"""Batches with samples; those that were not looked at for longest are forgotten."""


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


class Samples:
    """Keeps samples of the batches that somebody looks at. Threads share it."""

    def __init__(self) -> None:
        self._of: OrderedDict[int, list[Sample]] = OrderedDict()
        self._lock = threading.Lock()

    def record(self, batch_id: int, sample: Sample) -> None:
        """Keep a sample. One that says the same as the two before it takes the place of the last."""
        with self._lock:
            samples = self._of.setdefault(batch_id, [])
            self._of.move_to_end(batch_id)
            if samples and sample.at <= samples[-1].at:
                return
            if len(samples) > 1 and samples[-2][1:] == samples[-1][1:] == sample[1:]:
                samples.pop()
            samples.append(sample)
            if len(samples) > POINTS:
                del samples[1:-1:2]
            while len(self._of) > BATCHES:
                self._of.popitem(last=False)

    def of(self, batch_id: int) -> Sequence[Sample]:
        """The samples of a batch, the oldest first."""
        with self._lock:
            return tuple(self._of.get(batch_id, ()))

    def rate(self, batch_id: int, *, within: int = 60_000) -> float | None:
        """Items a second over the last ``within`` ms; None if that is not known."""
        samples = self.of(batch_id)
        if not samples:
            return None
        last = samples[-1]
        first = next(sample for sample in samples if sample.at >= last.at - within)
        if last.at == first.at and len(samples) > 1:
            first = samples[-2]  # nothing was sampled within that time
        passed = last.at - first.at
        return (last.done - first.done) * 1000 / passed if passed > 0 else None
