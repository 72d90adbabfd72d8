"""Acknowledging items: check every id, group them by word, clear, settle, and say who was first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fanin.app.ledger.issued import check_issued
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.settle import Settler
from fanin.app.ports import Ports
from fanin.app.ports.batches import FailureRow
from fanin.app.ports.words import Cleared, WordKey
from fanin.domain import ids, limits
from fanin.domain.acks import Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.ids import Block
from fanin.errors import InvalidRequest


@dataclass
class _Share:
    """One batch's share of a request.

    Attributes:
        items: block → ordinals named by id, in order, repeats included.
        ranges: half-open ranges of ordinals.
        counted: acknowledgements without ids.
        masks: the named items' bits, word by word of level 0.
        covered: words of level 0 that were done as a whole before, by a range marked higher up.
    """

    items: list[tuple[Block, list[int]]] = field(default_factory=list)
    ranges: list[tuple[int, int]] = field(default_factory=list)
    counted: int = 0
    masks: dict[int, int] = field(default_factory=dict)
    covered: frozenset[int] = frozenset()

    @property
    def named(self) -> int:
        return sum(len(ordinals) for _, ordinals in self.items)

    @property
    def ranged(self) -> int:
        return sum(stop - start for start, stop in self.ranges)

    @property
    def total(self) -> int:
        return self.named + self.ranged + self.counted


class Acks:
    """The acknowledging side of the ledger.

    Args:
        ports: the stores.
        known: batch rows this process has seen.
        settler: clears bits and settles.
    """

    def __init__(self, ports: Ports, known: KnownBatches, settler: Settler) -> None:
        self._ports = ports
        self._known = known
        self._settler = settler

    def ack(
        self, items: Sequence[str], ranges: Sequence[ItemRange], counts: Sequence[Count]
    ) -> list[Receipt]:
        """See ``Ledger.ack``."""
        limits.at_most("item ids", items, limits.MAX_IDS)
        limits.at_most("ranges", ranges, limits.MAX_RANGES)
        limits.at_most("counts", counts, limits.MAX_COUNTS)
        shares: dict[int, _Share] = {}
        blocks: list[Block] = []
        for prefix, indices in ids.group_by_prefix(items).items():
            block = ids.parse_prefix(prefix)
            blocks.append(block)
            share = shares.setdefault(block.batch_id, _Share())
            share.items.append((block, ids.parse_indices(block, indices)))
        for item_range in ranges:
            block, start, stop = _parse_range(item_range)
            blocks.append(block)
            shares.setdefault(block.batch_id, _Share()).ranges.append((start, stop))
        for count in counts:
            limits.whole("batch_id", count.batch_id, 0, ids.MAX_BATCH_ID)
            limits.whole("n", count.n, 1, ids.MAX_COUNT)
            shares.setdefault(count.batch_id, _Share()).counted += count.n
        batches = self._check(shares, blocks)
        for batch_id, share in shares.items():
            if share.counted and batches[batch_id].mode is Mode.EXACT:
                raise InvalidRequest(f"batch {batch_id} is exact: acknowledge its items by their ids")
        return self._mark(shares, batches)

    def fail(self, failures: Sequence[Failure]) -> list[Receipt]:
        """See ``Ledger.fail``."""
        limits.at_most("failures", failures, limits.MAX_FAILURES)
        shares: dict[int, _Share] = {}
        blocks: list[Block] = []
        notes: dict[int, list[FailureRow]] = {}
        for prefix, indices in ids.group_by_prefix(failure.item for failure in failures).items():
            block = ids.parse_prefix(prefix)
            blocks.append(block)
            share = shares.setdefault(block.batch_id, _Share())
            share.items.append((block, ids.parse_indices(block, indices)))
        for failure in failures:
            reason = limits.text("reason", failure.reason, limits.MAX_REASON)
            prefix, _, index = failure.item.rpartition(":")
            block = ids.parse_prefix(prefix)
            row = FailureRow(block.first + int(index), failure.item, reason)
            notes.setdefault(block.batch_id, []).append(row)
        # A range may have been marked on a level that a row seen before did not have.
        self._known.refresh(shares)
        batches = self._check(shares, blocks)
        for batch_id, rows in notes.items():
            if not batches[batch_id].state.terminal:
                self._ports.parts.put_failures(batch_id, rows, expires_at=batches[batch_id].expires_at)
        return self._mark(shares, batches, failed=True)

    def _check(self, shares: Mapping[int, _Share], blocks: Sequence[Block]) -> dict[int, Batch]:
        """Read the batches, and verify every block against its batch's salt and size.

        Raises:
            InvalidItemId: the service never issued such an id.
        """
        stops = dict.fromkeys(shares, 0)
        for block in blocks:
            stops[block.batch_id] = max(stops[block.batch_id], block.stop)
        batches = self._known.reaching(stops)
        for block in blocks:
            check_issued(block, batches[block.batch_id])
        return batches

    def _mark(
        self, shares: Mapping[int, _Share], batches: Mapping[int, Batch], *, failed: bool = False
    ) -> list[Receipt]:
        tree = self._ports.tree
        masks: dict[WordKey, int] = {}
        for batch_id, share in shares.items():
            batch = batches[batch_id]
            if batch.state.terminal or batch.mode is Mode.ESTIMATED:
                continue
            share.masks = tree.marks([ordinal for _, part in share.items for ordinal in part])
            for number, mask in share.masks.items():
                masks[WordKey(batch_id, 0, number)] = mask
            for start, stop in share.ranges:
                for mark in tree.cover(start, stop, batch.items):
                    key = WordKey(batch_id, mark.level, mark.number)
                    masks[key] = masks.get(key, 0) | mark.mask
        failing = self._failing(shares, batches) if failed else frozenset()
        outcomes = self._settler.settle(masks, failed=failing) if masks else {}
        return [self._receipt(batches[batch_id], share, outcomes) for batch_id, share in shares.items()]

    def _failing(self, shares: Mapping[int, _Share], batches: Mapping[int, Batch]) -> frozenset[WordKey]:
        """The words whose items fail, less those that a range has marked as done on a higher level.

        Whoever acknowledges reads nothing, and need not know. But an item that succeeded must not be listed
        as failed, so here the words above are read first.
        """
        tree = self._ports.tree
        paths: dict[WordKey, list[tuple[WordKey, int]]] = {}
        for batch_id, share in shares.items():
            levels = range(1, tree.root_level(batches[batch_id].items) + 1)
            for number in share.masks:
                steps = [divmod(number // tree.width ** (level - 1), tree.width) for level in levels]
                paths[WordKey(batch_id, 0, number)] = [
                    (WordKey(batch_id, level, above), tree.bits[bit])
                    for level, (above, bit) in zip(levels, steps, strict=True)
                ]
        words = self._ports.words.read({key for path in paths.values() for key, _ in path})
        covered = {
            leaf
            for leaf, path in paths.items()
            if any(not words.get(key, tree.full) & bit for key, bit in path)
        }
        for batch_id, share in shares.items():
            share.covered = frozenset(leaf.number for leaf in covered if leaf.batch_id == batch_id)
        return frozenset(paths.keys() - covered)

    def _receipt(self, before: Batch, share: _Share, outcomes: Mapping[WordKey, Cleared]) -> Receipt:
        if before.state.terminal:
            return self._late(before, share)
        if before.mode is Mode.ESTIMATED:
            return self._counted(before, share)
        batch = self._known.cached(before.batch_id) or before
        self._known.touch(batch)
        first = {
            number: 0
            if number in share.covered
            else mask & outcomes[WordKey(before.batch_id, 0, number)].first
            for number, mask in share.masks.items()
        }
        duplicates = tuple(self._duplicates(share, first))
        return Receipt(
            before.batch_id,
            before.user_key,
            batch.state,
            complete=batch.state is State.COMPLETE,
            first=share.named - len(duplicates),
            duplicates=duplicates,
            ranged=share.ranged,
        )

    def _duplicates(self, share: _Share, first: Mapping[int, int]) -> Iterable[str]:
        """Ids of items that were done already, or are named twice in the request."""
        if sum(mask.bit_count() for mask in first.values()) == share.named:
            return
        width, bits = self._ports.tree.width, self._ports.tree.bits
        seen: set[int] = set()
        for block, ordinals in share.items:
            prefix = block.prefix
            for ordinal in ordinals:
                if ordinal in seen or not first[ordinal // width] & bits[ordinal % width]:
                    yield f"{prefix}:{ordinal - block.first}"
                seen.add(ordinal)

    def _counted(self, before: Batch, share: _Share) -> Receipt:
        row = self._ports.batches.count(before.batch_id, share.total, activity=self._known.activity(before))
        if row is None:
            return self._late(self._known.current(before.batch_id), share)
        row = self._settler.finish(self._known.remember(row))
        return Receipt(
            row.batch_id,
            row.user_key,
            row.state,
            complete=row.state is State.COMPLETE,
            ranged=share.total,
        )

    def _late(self, batch: Batch, share: _Share) -> Receipt:
        complete = batch.state is State.COMPLETE
        receipt = Receipt(batch.batch_id, batch.user_key, batch.state, complete=complete)
        if not complete or batch.partial or batch.mode is Mode.ESTIMATED:
            return replace(receipt, late=share.total)
        duplicates = tuple(
            f"{block.prefix}:{ordinal - block.first}" for block, part in share.items for ordinal in part
        )
        return replace(receipt, duplicates=duplicates, ranged=share.ranged)


def _parse_range(item_range: ItemRange) -> tuple[Block, int, int]:
    block = ids.parse_prefix(item_range.group)
    stop = block.size if item_range.stop is None else item_range.stop
    limits.whole("the end of a range", stop, 1, block.size)
    limits.whole("the start of a range", item_range.start, 0, stop - 1)
    return block, block.first + item_range.start, block.first + stop
