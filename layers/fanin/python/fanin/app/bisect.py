"""One call for many items, in which a bad item fails alone."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from fanin.errors import REFUSALS, FaninError

T = TypeVar("T")


class FailedCall(NamedTuple, Generic[T]):
    """Items for which a call failed.

    Attributes:
        items: one item if the item is to blame; else all items of the call.
        error: what the call raised.
    """

    items: Sequence[T]
    error: Exception

    @property
    def refused(self) -> bool:
        """Whether the item is to blame, so that repeating the call with it would fail again."""
        return isinstance(self.error, REFUSALS)


def bisect(
    items: Sequence[T], call: Callable[[Sequence[T]], object], *, on_defect: bool = False
) -> list[FailedCall[T]]:
    """Make one call for all items; if it is refused, halve the items until each bad one stands alone.

    One bad item among n costs about 2 log2(n) further calls. An error of fanin that does not blame the items,
    such as ``Throttled``, is not retried here: all items of that call fail with it.

        >>> from fanin.errors import InvalidRequest
        >>> def parse(texts):
        ...     for text in texts:
        ...         if not text.isdigit():
        ...             raise InvalidRequest(f"{text!r} is not a number")
        >>> for failed in bisect(["1", "2", "x", "4"], parse):
        ...     print(failed.items, failed.error)
        ['x'] 'x' is not a number

    Args:
        items: what the call is for; without items there is no call.
        call: gets one item or several neighbours. An item may be passed again after a call that raised, so
            either a call that raises has no effect, or the effect may be repeated.
        on_defect: also halve on errors that are not fanin's, which one item may have brought to light; by
            default they are raised.

    Returns:
        What failed, in the order of the items; empty if nothing did.
    """
    if not items:
        return []
    try:
        call(items)
    except FaninError as error:
        if len(items) == 1 or not isinstance(error, REFUSALS):
            return [FailedCall(items, error)]
    except Exception as error:
        if not on_defect:
            raise
        if len(items) == 1:
            return [FailedCall(items, error)]
    else:
        return []
    middle = len(items) // 2
    halves = items[:middle], items[middle:]
    return [failed for half in halves for failed in bisect(half, call, on_defect=on_defect)]
