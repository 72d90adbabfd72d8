"""Parses a request into one share for each batch, plans what each clears there, and collects the verdicts.

Nothing is read or written here. A malformed mark is refused alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from fanin.app.ledger.known_batches import check_issued
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.ids import Block
from fanin.domain.marks import Count, Done, Failure, ItemRange, Mark, Receipt, checked
from fanin.domain.totals import in_order
from fanin.errors import REFUSALS, FaninError, InvalidItemId, InvalidRequest, RequestTooLarge, Throttled


class Named(NamedTuple):
    """Items of one block that are named by their ids.

    Attributes:
        block: as parsed; whether the service issued it is not checked yet.
        places: of their marks in the request.
        ordinals: of the items, each beside its place.
    """

    block: Block
    places: Sequence[int]
    ordinals: Sequence[int]


class Span(NamedTuple):
    """A range of the items of one block: ordinals start ≤ i < stop."""

    place: int
    block: Block
    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start


@dataclass
class Share:
    """The marks of a request that are for one batch, by their places; complete once the request is parsed.

    Attributes:
        batch_id: the batch.
        named: items named by their ids.
        spans: items named by ranges.
        counts: numbers of items without ids, by place.
        detailed: places of marks that may say more than that an item is done.
    """

    batch_id: int
    named: list[Named] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)
    detailed: list[int] = field(default_factory=list)

    @cached_property
    def stop(self) -> int:
        """One past the highest ordinal of the named blocks; 0 if no block is named."""
        blocks = [one.block for one in self.named] + [one.block for one in self.spans]
        return max([block.stop for block in blocks], default=0)

    @cached_property
    def places(self) -> list[int]:
        """The places of all its marks."""
        named = [place for one in self.named for place in one.places]
        return [*named, *[span.place for span in self.spans], *self.counts]

    @cached_property
    def items(self) -> list[tuple[int, int]]:
        """Place and ordinal of each item that is named by its id, in the order of the request."""
        found = [one for named in self.named for one in zip(named.places, named.ordinals, strict=True)]
        return sorted(found) if len(self.named) > 1 else found

    @cached_property
    def total(self) -> int:
        """How many items it names, repeats included."""
        named = sum([len(one.places) for one in self.named])
        return named + sum([span.size for span in self.spans]) + sum(self.counts.values())

    def without(self, places: Container[int]) -> Share:
        """The share without the marks at some places."""
        left: list[Named] = []
        for block, of, ordinals in self.named:
            if kept := [pair for pair in zip(of, ordinals, strict=True) if pair[0] not in places]:
                left.append(Named(block, *map(list, zip(*kept, strict=True))))
        spans = [span for span in self.spans if span.place not in places]
        counts = {place: n for place, n in self.counts.items() if place not in places}
        detailed = [place for place in self.detailed if place not in places]
        return Share(self.batch_id, left, spans, counts, detailed)


class _Indices(NamedTuple):
    """Items of one block, in the order of the request: the places of their marks, and indices as text."""

    block: Block
    places: list[int]
    texts: list[str]


def shares_of(marks: Sequence[Mark], refused: dict[int, FaninError], most: int) -> dict[int, Share]:
    """Parse a request.

    Args:
        marks: of the request.
        refused: gets the errors of marks that are malformed.
        most: the largest value of an item for a total.

    Returns:
        Batch id → its share, in the order in which the batches are named first.
    """
    parser = _Parser(refused)
    last, found = "", None
    for place, mark in enumerate(marks):
        try:
            if not isinstance(mark, str):
                parser.add(place, checked(mark, most))
                continue
            prefix, _, index = mark.rpartition(":")
            if found is None or prefix != last:
                found = None
                found = parser.block(prefix, mark)
                last = prefix
            found.places.append(place)
            found.texts.append(index)
        except InvalidRequest as error:
            refused[place] = error
    return parser.finish()


class _Parser:
    """Collects the shares of a request.

    Args:
        refused: gets the errors of marks that turn out to be malformed when the request is read to its end.
    """

    def __init__(self, refused: dict[int, FaninError]) -> None:
        self._refused = refused
        self._shares: dict[int, Share] = {}
        self._blocks: dict[str, _Indices] = {}

    def block(self, prefix: str, item: str) -> _Indices:
        """Where the items with a prefix are collected.

        Raises:
            InvalidItemId: the prefix of the item is malformed. Indices are checked by ``finish``.
        """
        if not prefix:
            raise InvalidItemId(f"item id {ids.quoted(item)} is not <batch id>:<group id>:<index>")
        found = self._blocks.get(prefix)
        if found is None:
            found = self._blocks[prefix] = _Indices(ids.parse_prefix(prefix), [], [])
            self._share(found.block.batch_id)
        return found

    def add(self, place: int, mark: Mark) -> None:
        """Take a mark that is not a plain item id.

        Raises:
            InvalidItemId: as ``block`` does.
            InvalidRequest: a range does not lie within its group.
        """
        if isinstance(mark, ItemRange):
            span = _span(place, mark)
            self._share(span.block.batch_id).spans.append(span)
        elif isinstance(mark, Count):
            share = self._share(mark.batch_id)
            share.counts[place] = mark.n
            share.detailed.append(place)
        elif isinstance(mark, Done | Failure):
            prefix, _, index = mark.item.rpartition(":")
            found = self.block(prefix, mark.item)
            found.places.append(place)
            found.texts.append(index)
            self._share(found.block.batch_id).detailed.append(place)

    def finish(self) -> dict[int, Share]:
        """The shares, by batch id; parses the indices, many at a time."""
        for found in self._blocks.values():
            if (named := _named(found, self._refused)).places:
                self._shares[named.block.batch_id].named.append(named)
        for share in self._shares.values():
            share.detailed = [place for place in share.detailed if place not in self._refused]
        return {batch_id: share for batch_id, share in self._shares.items() if share.total}

    def _share(self, batch_id: int) -> Share:
        return self._shares.setdefault(batch_id, Share(batch_id))


def _named(found: _Indices, refused: dict[int, FaninError]) -> Named:
    """The ordinals of items; one whose index is malformed is refused, and left out."""
    try:
        return Named(found.block, found.places, ids.parse_indices(found.block, found.texts))
    except InvalidItemId:
        places, ordinals = list[int](), list[int]()
        for place, text in zip(found.places, found.texts, strict=True):
            try:
                ordinals += ids.parse_indices(found.block, [text])
                places.append(place)
            except InvalidItemId as error:
                refused[place] = error
        return Named(found.block, places, ordinals)


def _span(place: int, item_range: ItemRange) -> Span:
    block = ids.parse_prefix(item_range.group)
    stop = block.size if item_range.stop is None else item_range.stop
    limits.whole("the end of a range", stop, 1, block.size)
    limits.whole("the start of a range", item_range.start, 0, stop - 1)
    return Span(place, block, block.first + item_range.start, block.first + stop)


@dataclass
class Verdicts:
    """One request, and the verdicts so far; see ``Marked``.

    Attributes:
        marks: of the request.
        whole: whether the values are exact; the sums of a nested batch may not be.
    """

    marks: Sequence[Mark]
    whole: bool
    receipts: dict[int, Receipt] = field(default_factory=dict)
    refused: dict[int, FaninError] = field(default_factory=dict)
    left: dict[int, FaninError] = field(default_factory=dict)
    unknown: dict[int, FaninError] = field(default_factory=dict)

    def fails(self, place: int) -> bool:
        """Whether a mark says that its item failed."""
        return isinstance(self.marks[place], Failure)

    def values(self, place: int) -> Mapping[str, int]:
        """What a mark brings to the totals of its batch."""
        mark = self.marks[place]
        return mark.totals if isinstance(mark, Done | Failure | Count) else {}

    def ids(self, places: Iterable[int]) -> tuple[str, ...]:
        """The item ids of marks."""
        named = (self.marks[place] for place in places)
        return tuple(mark.item if isinstance(mark, Done | Failure) else str(mark) for mark in named)

    def fail(self, places: Iterable[int], error: FaninError) -> None:
        """Refuse marks whose content the error blames, and leave others for a repeat."""
        where = self.refused if isinstance(error, REFUSALS) else self.left
        where |= dict.fromkeys(places, error)

    def settles(self, place: int) -> bool:
        """Whether no error is known of a mark."""
        return place not in self.left and place not in self.refused

    def end(self, share: Share, batch: Batch) -> None:
        """Judge the share of a batch that had ended before: nothing was written."""
        receipt = receipt_of(batch)
        if batch.all_done:
            ranged = sum(span.size for span in share.spans)
            duplicates = self.ids(place for place, _ in share.items)
            self.receipts[batch.batch_id] = replace(receipt, duplicates=duplicates, ranged=ranged)
        else:
            self.receipts[batch.batch_id] = replace(receipt, late=share.total)


@dataclass
class Plan:
    """What a request does to one live batch; marks are named by their places.

    Attributes:
        batch: the row.
        share: the marks of the batch.
        first: ordinal → the mark that clears the bit of the item, the item's first; only in exact mode.
        held: ordinal → the first failure of an item that its batch holds.
        failing: ordinal → the failure of an item; of those that are not held.
        covered: ordinals of failures whose items a range has marked from above. Their bits are cleared all
            the same, not as failed, since a repeat must settle what an earlier call left.
        results: ordinal → the mark that brings the result of the item.
        repeats: mark → an earlier mark of the same item, which decides.
        spans: ranges; one that follows a failure or a result of its own items is left for a repeat.
    """

    batch: Batch
    share: Share
    first: dict[int, int] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    failing: dict[int, int] = field(default_factory=dict)
    covered: set[int] = field(default_factory=set)
    results: dict[int, Done] = field(default_factory=dict)
    repeats: dict[int, int] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)

    @property
    def failures(self) -> dict[int, int]:
        """Ordinal → the mark, of all items that fail."""
        return self.failing | self.held

    def leave_out(self, failures: Iterable[int], error: FaninError, verdicts: Verdicts) -> None:
        """Take failures out, by their ordinals, and judge their marks."""
        for ordinal in failures:
            if ordinal in self.failing:
                self.first.pop(ordinal, None)
            of = self.failing if ordinal in self.failing else self.held
            verdicts.fail([of.pop(ordinal)], error)


def accepted(share: Share, batch: Batch, verdicts: Verdicts) -> Share:
    """Refuse ids that were not issued, and what the batch cannot take; return the share without these."""
    names = tuple(batch.totals)
    refused: dict[int, FaninError] = {}
    blocks = [(named.block, named.places) for named in share.named]
    blocks += [(span.block, [span.place]) for span in share.spans]
    for block, places in blocks:
        try:
            check_issued(block, batch)
        except InvalidItemId as error:
            refused |= dict.fromkeys(places, error)
    for place in share.detailed:
        mark = verdicts.marks[place]
        if not batch.results and isinstance(mark, Done) and mark.result is not None:
            refused[place] = InvalidRequest(
                f"batch {batch.batch_id} keeps no results: open it with results=True, or acknowledge without"
            )
        if values := verdicts.values(place):
            try:
                in_order(values, names, batch_id=batch.batch_id)
            except InvalidRequest as error:
                refused.setdefault(place, error)
    if share.counts and batch.mode is Mode.EXACT:
        exact = InvalidRequest(
            f"batch {batch.batch_id} is exact: acknowledge its items by their ids, not by a count"
        )
        refused |= dict.fromkeys(share.counts, exact)
    verdicts.refused |= refused
    return share.without(refused) if refused else share


def plan_of(share: Share, batch: Batch, verdicts: Verdicts) -> Plan:
    """Find the first mark of each item, and the ranges that one call can mark."""
    plan = Plan(batch, share)
    fails = set(filter(verdicts.fails, share.detailed))
    if batch.mode is Mode.ESTIMATED:
        failing = [(ordinal, place) for place, ordinal in share.items if place in fails]
        plan.failing = dict(reversed(failing))  # the first of each item
        return plan
    fitting = _fitting(share, batch, verdicts)
    spans = [span for span in share.spans if span.place not in verdicts.refused]
    for place, ordinal in share.items:
        failure = place in fails
        # An earlier mark of the item decides; a held failure decides nothing but failures.
        ranges = (span.place for span in spans if span.place < place and span.start <= ordinal < span.stop)
        earlier = plan.first.get(ordinal, plan.held.get(ordinal) if failure else None)
        earlier = next(ranges, None) if earlier is None else earlier
        if earlier is not None:
            plan.repeats[place] = earlier
            continue
        if not (failure and batch.holds):
            plan.first[ordinal] = place
        if failure:
            (plan.held if batch.holds else plan.failing)[ordinal] = place
    if batch.results:
        marks = ((ordinal, verdicts.marks[place]) for ordinal, place in plan.first.items())
        plan.results = {n: one for n, one in marks if isinstance(one, Done) and one.result is not None}
    noted = [(n, plan.first[n]) for n in (*plan.failing, *plan.results)]
    for span in spans:
        if any(place < span.place and span.start <= n < span.stop for n, place in noted):
            verdicts.left[span.place] = Throttled(
                "an earlier mark has a failure or a result of one of its items; repeat this range"
            )
        elif span.place in fitting:
            plan.spans.append(span)
    return plan


def _fitting(share: Share, batch: Batch, verdicts: Verdicts) -> set[int]:
    """The places of ranges that one call can mark; of batches with totals, it marks item by item."""
    if not batch.totals:
        return {span.place for span in share.spans}
    fitting: set[int] = set()
    room = limits.MAX_MARKS
    by_item = "ranges of batches with totals are marked item by item"
    for span in share.spans:
        if span.size > limits.MAX_MARKS:
            verdicts.refused[span.place] = RequestTooLarge(
                f"{by_item}: name at most {limits.MAX_MARKS} items by one, not {span.size}"
            )
        elif span.size > room:
            verdicts.left[span.place] = Throttled(f"{by_item}, {limits.MAX_MARKS} a call; repeat this range")
        else:
            room -= span.size
            fitting.add(span.place)
    return fitting


def receipt_of(row: Batch) -> Receipt:
    return Receipt(row.batch_id, row.user_key, row.state, complete=row.state is State.COMPLETE)
