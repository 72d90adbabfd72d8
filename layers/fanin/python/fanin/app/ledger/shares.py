"""Parses a request into one share for each batch. Nothing is read yet; a malformed mark is refused alone."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from fanin.domain import ids, limits
from fanin.domain.ids import Block
from fanin.domain.marks import Count, Done, Failure, ItemRange, Mark, checked
from fanin.errors import FaninError, InvalidItemId, InvalidRequest


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
    """

    batch_id: int
    named: list[Named] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)

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
        return Share(
            self.batch_id,
            left,
            [span for span in self.spans if span.place not in places],
            {place: n for place, n in self.counts.items() if place not in places},
        )


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
        self._blocks: dict[str, _Indices | InvalidItemId] = {}

    def block(self, prefix: str, item: str) -> _Indices:
        """Where the items with a prefix are collected.

        Raises:
            InvalidItemId: the prefix of the item is malformed. Indices are checked by ``finish``.
        """
        found = self._blocks.get(prefix) or _indices(prefix, item)
        if prefix:
            self._blocks[prefix] = found
        if isinstance(found, InvalidItemId):
            raise found
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
            self._share(mark.batch_id).counts[place] = mark.n
        elif isinstance(mark, Done | Failure):
            prefix, _, index = mark.item.rpartition(":")
            found = self.block(prefix, mark.item)
            found.places.append(place)
            found.texts.append(index)

    def finish(self) -> dict[int, Share]:
        """The shares, by batch id; parses the indices, many at a time."""
        for found in self._blocks.values():
            if isinstance(found, _Indices) and (named := _named(found, self._refused)).places:
                self._shares[named.block.batch_id].named.append(named)
        return {batch_id: share for batch_id, share in self._shares.items() if share.total}

    def _share(self, batch_id: int) -> Share:
        if batch_id not in self._shares:
            self._shares[batch_id] = Share(batch_id)
        return self._shares[batch_id]


def _indices(prefix: str, item: str) -> _Indices | InvalidItemId:
    if not prefix:
        return InvalidItemId(f"item id {ids.quoted(item)} is not <batch id>:<group id>:<index>")
    try:
        return _Indices(ids.parse_prefix(prefix), [], [])
    except InvalidItemId as error:
        return error


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
