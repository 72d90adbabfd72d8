"""Which failures a redrive or a release is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fanin.domain import limits
from fanin.domain.failures import error_of
from fanin.domain.ids import MAX_ITEMS
from fanin.errors import RequestTooLarge


@dataclass(frozen=True, slots=True)
class OrdinalRange:
    """Items of a batch by their ordinals, as listings of failures and of missing items show them.

    Attributes:
        start: ordinal of the first.
        stop: one past the last.
    """

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Selection:
    """Which failures are meant; those that meet both conditions. Without conditions, all.

    Attributes:
        errors: what failures have in common (``error_of``), or the beginning of it; one of them must match.
        ranges: ordinals; the item must lie in one of them.
    """

    errors: Sequence[str] = ()
    ranges: Sequence[OrdinalRange] = ()

    def check(self) -> None:
        """Refuse a selection that is too large, or has an empty range.

        Raises:
            RequestTooLarge: there are too many errors or ranges, or the errors have too many bytes.
            InvalidRequest: an error is not text, or a range ends before it begins.
        """
        limits.at_most("errors", self.errors, limits.MAX_ERRORS)
        limits.at_most("ranges", self.ranges, limits.MAX_SELECTED_RANGES)
        for error in self.errors:
            limits.text("an error", error, limits.MAX_REASON, least=1)
        if (size := sum(len(error.encode(errors="surrogatepass")) for error in self.errors)) > (
            most := limits.MAX_ERRORS_BYTES
        ):
            raise RequestTooLarge(f"{size} bytes of errors in one call; send at most {most}")
        for one in self.ranges:
            limits.whole("the end of a range", one.stop, 1, MAX_ITEMS)
            limits.whole("the start of a range", one.start, 0, one.stop - 1)

    def takes(self, ordinal: int, reason: str) -> bool:
        """Whether a failure of an item, for a reason, is meant."""
        if self.ranges and not any(one.start <= ordinal < one.stop for one in self.ranges):
            return False
        return not self.errors or self._names(error_of(reason))

    def _names(self, error: str) -> bool:
        return any(error.startswith((text, error_of(text))) for text in self.errors)

    @property
    def stop(self) -> int | None:
        """One past the last ordinal that it can take; None if there is no such bound."""
        return max((one.stop for one in self.ranges), default=None)
