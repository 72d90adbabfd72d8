"""What callers name in acknowledgements and failures, parsed and grouped by batch before anything is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from fanin.app.ports.parts import FailureRow
from fanin.domain import ids, limits
from fanin.domain.acks import Acks, Count, Failure, ItemRange, Result
from fanin.domain.failures import checked_message
from fanin.domain.ids import Block
from fanin.domain.totals import MAX_VALUE, check_values
from fanin.errors import RequestTooLarge
from fanin.wire.messages import pack, unpack

_T = TypeVar("_T")


class Named(NamedTuple):
    """Items of one block that are named by their ids.

    Attributes:
        block: as parsed; whether the service issued it is not checked yet.
        ordinals: in the order of the request, repeats included.
    """

    block: Block
    ordinals: Sequence[int]

    @property
    def items(self) -> list[str]:
        """Their ids, as they were given."""
        prefix, first = self.block.prefix, self.block.first
        return [f"{prefix}:{ordinal - first}" for ordinal in self.ordinals]


class Span(NamedTuple):
    """A range of the items of one block: ordinals start ≤ i < stop."""

    block: Block
    start: int
    stop: int

    @property
    def item_range(self) -> ItemRange:
        """The range by the indices of its group."""
        first = self.block.first
        return ItemRange(self.block.prefix, self.start - first, self.stop - first)


@dataclass(frozen=True, slots=True)
class Share:
    """One batch's share of a request.

    Attributes:
        batch_id: the batch.
        named: items named by their ids.
        spans: items named by ranges.
        counted: acknowledgements without ids.
        notes: why each failed item failed; empty for acknowledgements.
        messages: of failed items, by ordinal, each as it is kept.
        results: what items bring to the totals, by ordinal; of an item that is named twice, both.
        counted_totals: what the counted acknowledgements bring.
        exact_values: whether what the items bring is exact; the sums of a nested batch may not be.
    """

    batch_id: int
    named: tuple[Named, ...] = ()
    spans: tuple[Span, ...] = ()
    counted: int = 0
    notes: tuple[FailureRow, ...] = ()
    messages: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    results: tuple[tuple[int, Mapping[str, int]], ...] = ()
    counted_totals: tuple[Mapping[str, int], ...] = ()
    exact_values: bool = True

    @property
    def blocks(self) -> Iterator[Block]:
        """Every block that is named."""
        yield from (named.block for named in self.named)
        yield from (span.block for span in self.spans)

    @property
    def stop(self) -> int:
        """One past the highest ordinal of the named blocks; 0 if no block is named."""
        return max((block.stop for block in self.blocks), default=0)

    @property
    def ordinals(self) -> list[int]:
        """Items named by their ids, in the order of the request, repeats included."""
        return [ordinal for named in self.named for ordinal in named.ordinals]

    @property
    def items(self) -> int:
        """How many ids were named, repeats included."""
        return sum(len(named.ordinals) for named in self.named)

    @property
    def ranged(self) -> int:
        """How many items the ranges have."""
        return sum(span.stop - span.start for span in self.spans)

    @property
    def total(self) -> int:
        """How many acknowledgements it has in all."""
        return self.items + self.ranged + self.counted

    @property
    def acks(self) -> Acks:
        """The request that names exactly this share."""
        if self.notes:
            return Acks(failures=[self._failure(note) for note in self.notes])
        items, results = self._items()
        return Acks(
            items=items,
            ranges=[span.item_range for span in self.spans],
            counts=self._counts(),
            results=results or (),
        )

    def _items(self) -> tuple[list[str], list[Result]]:
        """The items that are named, and those of them that bring something.

        An estimated batch counts an item as often as it is named, each time with values of its own. Items
        that bring something are named last.
        """
        brought: dict[int, list[Mapping[str, int]]] = {}
        for ordinal, values in self.results:
            brought.setdefault(ordinal, []).append(values)
        items: list[str] = []
        results: list[Result] = []
        for named in reversed(self.named):
            for item, ordinal in zip(reversed(named.items), reversed(named.ordinals), strict=True):
                if left := brought.get(ordinal):
                    results.append(Result(item, left.pop()))
                else:
                    items.append(item)
        return items[::-1], results[::-1]

    def _failure(self, note: FailureRow) -> Failure:
        content = self.messages.get(note.ordinal)
        message = None if content is None else unpack(content)
        return Failure(note.item, note.reason, message, note.attempts, note.source, dict(note.totals))

    def _counts(self) -> Sequence[Count]:
        """Counts of these items, each with its own values: together, these may be more than one may have."""
        if not self.counted:
            return ()
        first, *others = self.counted_totals or ({},)
        rest = Count(self.batch_id, self.counted - len(others), first)
        return [rest, *(Count(self.batch_id, 1, totals) for totals in others)]


def parse_ack(
    items: Sequence[str],
    ranges: Sequence[ItemRange],
    counts: Sequence[Count],
    results: Sequence[Result] = (),
    *,
    most: int = MAX_VALUE,
) -> Mapping[int, Share]:
    """Parse a request to mark items done, in which no value is beyond ± ``most``.

    An item that ``results`` names is not named again by ``items``.

    Returns:
        Batch id → its share, in the order in which the batches are named first.

    Raises:
        RequestTooLarge: there are too many ids, ranges or counts.
        InvalidItemId: an item id or a group id is malformed.
        InvalidRequest: a range, a count or a value is out of its bounds.
    """
    if results:
        brings = {result.item for result in results}
        items = [item for item in items if item not in brings]
    limits.at_most("item ids", (*items, *results), limits.MAX_IDS)
    limits.at_most("ranges", ranges, limits.MAX_RANGES)
    limits.at_most("counts", counts, limits.MAX_COUNTS)
    everything = (*items, *(result.item for result in results)) if results else items
    parsed = list(_parse_items(everything))
    named = _by_batch((one.block.batch_id, one) for one in parsed)
    brought = _by_batch(_brought(results, _blocks(parsed), most))
    spans = _by_batch((span.block.batch_id, span) for span in map(_parse_range, ranges))
    counted = _by_batch(map(_parse_count, counts))
    totals = _by_batch((count.batch_id, check_values(count.totals)) for count in counts if count.totals)
    return {
        batch_id: Share(
            batch_id,
            named.get(batch_id, ()),
            spans.get(batch_id, ()),
            sum(counted.get(batch_id, ())),
            results=brought.get(batch_id, ()),
            counted_totals=totals.get(batch_id, ()),
        )
        for batch_id in {**named, **spans, **counted}
    }


def parse_failures(failures: Sequence[Failure]) -> Mapping[int, Share]:
    """Parse a request to mark items done as failed; the shares come as from ``parse_ack``.

    Raises:
        RequestTooLarge: there are too many failures, or too many bytes of messages.
        InvalidItemId: an item id is malformed.
        InvalidRequest: a reason is not text, or too long, a message is not one that SQS delivers, or a value
            is out of its bounds.
    """
    limits.at_most("failures", failures, limits.MAX_FAILURES)
    parsed = list(_parse_items([failure.item for failure in failures]))
    blocks = _blocks(parsed)
    brought = _by_batch(_brought([failure for failure in failures if failure.totals], blocks))
    named = _by_batch((one.block.batch_id, one) for one in parsed)
    noted = [_note(failure, blocks) for failure in failures]
    notes = _by_batch(noted)
    messages: dict[int, dict[int, bytes]] = {}
    size = 0
    for (batch_id, note), failure in zip(noted, failures, strict=True):
        if failure.message is not None:
            content = messages.setdefault(batch_id, {})[note.ordinal] = pack(checked_message(failure.message))
            size += len(content)
    if size > limits.MAX_FAILED_MESSAGES:
        raise RequestTooLarge(
            f"the messages of this call have {size} bytes as JSON; send at most {limits.MAX_FAILED_MESSAGES}"
            " in one call"
        )
    return {
        batch_id: Share(
            batch_id,
            named[batch_id],
            notes=notes[batch_id],
            messages=messages.get(batch_id, {}),
            results=brought.get(batch_id, ()),
        )
        for batch_id in named
    }


def _parse_items(items: Iterable[str]) -> Iterator[Named]:
    for prefix, indices in ids.group_by_prefix(items).items():
        block = ids.parse_prefix(prefix)
        yield Named(block, ids.parse_indices(block, indices))


def _blocks(parsed: Iterable[Named]) -> dict[str, Block]:
    """The blocks of items that have been parsed, by the prefixes of their ids."""
    return {one.block.prefix: one.block for one in parsed}


def _place(item: str, blocks: Mapping[str, Block]) -> tuple[int, int]:
    """The batch id and the ordinal of an item that has been parsed."""
    prefix, _, index = item.rpartition(":")
    block = blocks[prefix]
    return block.batch_id, block.first + int(index)


def _brought(
    results: Iterable[Result | Failure], blocks: Mapping[str, Block], most: int = MAX_VALUE
) -> Iterator[tuple[int, tuple[int, Mapping[str, int]]]]:
    """What items bring to the totals: (batch id, (ordinal, values)).

    Raises:
        InvalidRequest: a value is not a whole number within ± ``most``.
    """
    for result in results:
        batch_id, ordinal = _place(result.item, blocks)
        yield batch_id, (ordinal, check_values(result.totals, most))


def _parse_range(item_range: ItemRange) -> Span:
    block = ids.parse_prefix(item_range.group)
    stop = block.size if item_range.stop is None else item_range.stop
    limits.whole("the end of a range", stop, 1, block.size)
    limits.whole("the start of a range", item_range.start, 0, stop - 1)
    return Span(block, block.first + item_range.start, block.first + stop)


def _parse_count(count: Count) -> tuple[int, int]:
    limits.whole("batch_id", count.batch_id, 0, ids.MAX_BATCH_ID)
    limits.whole("n", count.n, 1, ids.MAX_COUNT)
    return count.batch_id, count.n


def _note(failure: Failure, blocks: Mapping[str, Block]) -> tuple[int, FailureRow]:
    reason = limits.text("reason", failure.reason, limits.MAX_REASON)
    batch_id, ordinal = _place(failure.item, blocks)
    return batch_id, FailureRow(
        ordinal,
        failure.item,
        reason,
        attempts=limits.whole("attempts", failure.attempts, 0, limits.MAX_ATTEMPTS),
        source=limits.text("source", failure.source, limits.MAX_CHANNEL),
        totals=tuple(sorted(failure.totals.items())),
    )


def _by_batch(pairs: Iterable[tuple[int, _T]]) -> dict[int, tuple[_T, ...]]:
    groups: dict[int, list[_T]] = {}
    for batch_id, part in pairs:
        groups.setdefault(batch_id, []).append(part)
    return {batch_id: tuple(parts) for batch_id, parts in groups.items()}
