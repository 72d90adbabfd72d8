"""How many failures a batch tolerates before it is given up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from fanin.domain import limits
from fanin.domain.ids import MAX_ITEMS
from fanin.errors import InvalidRequest

MIN_SAMPLE: Final = 100
"""Items that are done before a share of them says something, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The failures up to which a batch goes on; beyond them it ends as ``cancelled``, with a cause.

    At least one of ``count`` and ``percent`` is given. Where both are, either of them ends the batch.
    Failures are items that have failed, and items that are held.

    Attributes:
        count: most items that may fail.
        percent: most items that may fail of a hundred that are done, failed and held ones included.
        min_sample: how many items must be done before ``percent`` counts; by default 100.
    """

    count: int | None = None
    percent: float | None = None
    min_sample: int | None = None

    @property
    def sample(self) -> int:
        """How many items must be done before ``percent`` counts."""
        return MIN_SAMPLE if self.min_sample is None else self.min_sample

    def check(self) -> None:
        """Refuse a tolerance that says nothing, or contradicts itself.

        Raises:
            InvalidRequest: a number is out of range, or neither a count nor a share is given.
        """
        if self.count is None and self.percent is None:
            raise InvalidRequest("tolerated_failures needs a count, a percent, or both; it has neither")
        if self.count is not None:
            limits.whole("tolerated_failures.count", self.count, 0, MAX_ITEMS)
        if self.percent is not None:
            limits.percent("tolerated_failures.percent", self.percent)
        if self.min_sample is not None:
            limits.whole("tolerated_failures.min_sample", self.min_sample, 1, MAX_ITEMS)
            if self.percent is None:
                raise InvalidRequest(
                    "tolerated_failures.min_sample belongs to a percent; give a percent too, or leave it out"
                )

    def exceeded(self, failed: int, *, done_min: int, done_max: int) -> bool:
        """Whether so many failures are too many for certain.

        Args:
            failed: at least so many have failed.
            done_min: at least so many are done, failed ones included.
            done_max: at most so many are.
        """
        if self.count is not None and failed > self.count:
            return True
        return self.percent is not None and done_min >= self.sample and failed > self._share(done_max)

    def covers(self, failed: int, *, of: int) -> bool:
        """Whether so many failures are within the tolerance of a batch that has ended with so many items."""
        within = self.percent is None or failed <= self._share(of)
        return within and (self.count is None or failed <= self.count)

    def allowed(self, done: int) -> int:
        """The most failures that are within the tolerance when so many items are done."""
        bounds = [] if self.count is None else [self.count]
        if self.percent is not None:
            bounds.append(math.floor(self._share(max(done, self.sample))))
        return min(bounds)

    def _share(self, done: int) -> Fraction:
        # Of the decimal text: 0.1 percent of 1,000 is 1, and no more.
        return Fraction(str(self.percent)) * done / 100
