"""Marks say what became of items; verdicts answer them, each by the place of its mark in the request."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from fanin.domain import limits
from fanin.domain.batch import State
from fanin.domain.failures import KeptMessage, checked_message
from fanin.domain.ids import MAX_BATCH_ID, MAX_COUNT, parse_batch_id
from fanin.domain.totals import MAX_VALUE, check_values
from fanin.errors import FaninError, InvalidItemId, InvalidRequest


@dataclass(frozen=True, slots=True)
class Done:
    """An item that is done, with what it adds to the totals of its batch, and its result.

    Attributes:
        item: its id.
        totals: a whole number within ±2⁵³ for each total, by name; 0 for those left out. They are added when
            this mark is the item's first.
        result: any JSON value of up to 1 MiB; None if it has none. Its batch was opened to keep results, and
            the first that is stored is the item's.
    """

    item: str
    totals: Mapping[str, int] = field(default_factory=dict, hash=False)
    result: Any = field(default=None, hash=False, repr=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that failed, and so counts as done.

    Attributes:
        item: its id.
        reason: why, for people; at most 1,024 characters.
        message: its message, which is kept so that it can be sent again.
        attempts: how often the message was received; 0 if that is not known.
        source: URL or ARN of the queue that its message came from; empty if that is not known.
        totals: what the item adds to the totals of its batch all the same; see ``Done``.
    """

    item: str
    reason: str = ""
    message: KeptMessage | None = field(default=None, repr=False)
    attempts: int = 0
    source: str = ""
    totals: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class GivenUp(Failure):
    """An item that the service gives up by itself; the note of another failure takes the place of its own."""


@dataclass(frozen=True, slots=True)
class ItemRange:
    """A contiguous range of the items of one group, which are done.

    Attributes:
        group: ``<batch id>:<group id>``.
        start: index of the first item.
        stop: one past the last; None for the end of the group.
    """

    group: str
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """So many more items of an estimated batch are done, whichever they are.

    Attributes:
        batch_id: the batch.
        n: how many items.
        totals: what they add to the totals of the batch, all together; a repeat adds it again.
    """

    batch_id: int
    n: int
    totals: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Malformed:
    """A mark that cannot be read. It keeps its place in the request, so that it is refused alone.

    Attributes:
        error: why.
    """

    error: InvalidRequest


Mark: TypeAlias = str | Done | Failure | ItemRange | Count | Malformed
"""What became of an item, or of several. A plain item id: the item is done, and adds nothing to totals."""

WEIGHT: Final = 10
"""What a failure, a result, a range or a count weighs; an item id weighs 1."""
MAX_HEAVY: Final = limits.MAX_MARKS // WEIGHT
"""Failures, results, ranges and counts that one request has room for."""


def weight(mark: Mark) -> int:
    """What a mark weighs in its request, which has room for ``limits.MAX_MARKS``."""
    light = isinstance(mark, str | Malformed) or (isinstance(mark, Done) and mark.result is None)
    return 1 if light else WEIGHT


def checked(mark: object, most: int = MAX_VALUE) -> Mark:
    """Check the type of a mark and the bounds of its parts, and return it.

    Ids are not parsed here; ``fanin.domain.ids`` does that.

    Args:
        mark: what a caller gave.
        most: the largest value of an item for a total.

    Raises:
        InvalidItemId: it is not a mark, or its id is not text.
        InvalidRequest: one of its parts is out of bounds.
    """
    match mark:
        case str():
            return mark
        case Done():
            _check_id(mark.item)
            check_values(mark.totals, most)
        case Failure():
            _check_id(mark.item)
            limits.text("a reason", mark.reason, limits.MAX_REASON)
            limits.whole("attempts", mark.attempts, 0, limits.MAX_ATTEMPTS)
            limits.text("source", mark.source, limits.MAX_CHANNEL)
            check_values(mark.totals, most)
            if mark.message is not None:
                checked_message(mark.message)
        case ItemRange():
            _check_id(mark.group)
            limits.whole("the start of a range", mark.start, 0, MAX_COUNT)
            if mark.stop is not None:
                limits.whole("the end of a range", mark.stop, 1, MAX_COUNT)
        case Count():
            limits.whole("batch_id", mark.batch_id, 0, MAX_BATCH_ID)
            limits.whole("n", mark.n, 1, MAX_COUNT)
            check_values(mark.totals)
        case Malformed():
            raise mark.error
        case _:
            raise InvalidItemId(
                "a mark is an item id, which is text: <batch id>:<group id>:<index>; or a Done, Failure,"
                f" ItemRange or Count; not {limits.shown(mark)}"
            )
    return mark


def _check_id(name: object) -> None:
    if not isinstance(name, str):
        raise InvalidItemId(f"an id is text: <batch id>:<group id>:<index>; not {limits.shown(name)}")


def batch_of(mark: Mark) -> int | None:
    """Id of the batch that a mark is for; None if its id is malformed."""
    match mark:
        case Count():
            return mark.batch_id
        case Done() | Failure():
            name = mark.item
        case ItemRange():
            name = mark.group
        case str():
            name = mark
        case Malformed():
            return None
    with suppress(InvalidRequest, AttributeError):
        return parse_batch_id(name.partition(":")[0])
    return None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a request did to one batch.

    Attributes:
        batch_id: the batch.
        user_key: its user key.
        state: its state as last read; that may be some seconds ago, unless it is complete.
        complete: whether the batch is complete now.
        first: items that this request marked done or failed, and none before.
        failed: how many of these failed; in estimated mode, how many of those that were counted.
        duplicates: ids of items that were marked already, also by an earlier mark of the same request.
        ranged: items marked done by range, or counted in estimated mode; some may have been done before.
        late: items not marked because the batch had already ended.
        held: items that failed and stay pending, because the batch holds them.
    """

    batch_id: int
    user_key: str
    state: State
    complete: bool = False
    first: int = 0
    failed: int = 0
    duplicates: tuple[str, ...] = ()
    ranged: int = 0
    late: int = 0
    held: int = 0


_ADD_UP: Final = ("first", "failed", "duplicates", "ranged", "late", "held")


Unsettled: TypeAlias = Mapping[int, FaninError]
"""Why marks are not settled, by their places in the request."""


@dataclass(frozen=True, slots=True)
class Marked:
    """The verdicts on the marks of a request. A mark that no verdict names is settled, and in a receipt.

    Attributes:
        receipts: one for each batch of which something is settled.
        refused: what will never be taken: malformed or forged ids, values that do not fit, batches that are
            gone. Do not repeat these marks.
        left: what could not be marked now, because the store is overloaded or the time is up. Repeat these
            marks. Over HTTPS, one whose error is ``OutcomeUnknown`` may have been counted, if its batch is
            estimated; no answer has told whether it is.
        unknown: what an estimated batch may have counted. Do not repeat these marks.
    """

    receipts: Sequence[Receipt]
    refused: Unsettled = field(default_factory=dict)
    left: Unsettled = field(default_factory=dict)
    unknown: Unsettled = field(default_factory=dict)

    @property
    def unsettled(self) -> dict[int, FaninError]:
        """All marks that are in no receipt, in the order of their places."""
        return dict(sorted({**self.refused, **self.left, **self.unknown}.items()))

    def whole(self) -> list[Receipt]:
        """The receipts, if every mark is settled: for callers who repeat the whole request, or none of it.

        Raises:
            FaninError: why a mark is not settled; the error of one that may be repeated comes first.
        """
        for errors in (self.left, self.unknown, self.refused):
            for error in errors.values():
                raise error
        return list(self.receipts)

    def at(self, places: Sequence[int]) -> "Marked":
        """The same verdicts, where mark i of this request has the place ``places[i]`` of a larger one."""
        refused, left, unknown = (
            {places[place]: error for place, error in errors.items()}
            for errors in (self.refused, self.left, self.unknown)
        )
        return Marked(self.receipts, refused, left, unknown)


def merge(parts: Iterable[Marked]) -> Marked:
    """Merge the answers to several requests, whose places count through all of them; see ``Marked.at``."""
    refused, left, unknown = dict[int, FaninError](), dict[int, FaninError](), dict[int, FaninError]()
    receipts = list[Receipt]()
    for part in parts:
        receipts += part.receipts
        refused |= part.refused
        left |= part.left
        unknown |= part.unknown
    return Marked(merge_receipts(receipts), refused, left, unknown)


def merge_receipts(receipts: Iterable[Receipt]) -> list[Receipt]:
    """One receipt for each batch, in the order in which the batches first appear.

    Counts and duplicates add up. A batch is complete if any of its receipts says so. All else is as in its
    last receipt.
    """
    merged: dict[int, Receipt] = {}
    for receipt in receipts:
        before = merged.get(receipt.batch_id)
        merged[receipt.batch_id] = receipt if before is None else _added(before, receipt)
    return list(merged.values())


def _added(before: Receipt, later: Receipt) -> Receipt:
    sums = {name: getattr(before, name) + getattr(later, name) for name in _ADD_UP}
    return replace(later, complete=before.complete or later.complete, **sums)
