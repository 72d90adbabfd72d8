"""Clearing bits that the caller has coalesced itself, as a Spark job does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from fanin.app.ledger.known_batches import all_of
from fanin.app.ledger.settle import Brought, brought
from fanin.app.ledger.watching import Watching
from fanin.app.ports.words import Cleared, Tally, WordKey
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.totals import check_values
from fanin.domain.tree import Bits, positions
from fanin.errors import InvalidRequest

Values: TypeAlias = Mapping[int, Mapping[int, Mapping[str, int]]]
"""What items add to the totals of their batches: batch id → ordinal → values by the names of the totals."""
NO_VALUES: Final[Values] = {}


@dataclass(frozen=True, slots=True)
class BitsCleared:
    """What a call of ``clear`` did to one batch.

    Attributes:
        batch_id: the batch.
        state: its state as last read.
        complete: whether it is complete now.
        first: items of words of level 0 that this call marked done, and no call before.
        ranged: items below bits of higher levels that this call cleared; some may have been done before.
        duplicates: items whose bit was clear before.
        late: items left alone because the batch had ended without them.
    """

    batch_id: int
    state: State
    complete: bool = False
    first: int = 0
    ranged: int = 0
    duplicates: int = 0
    late: int = 0


class Clearing(Watching):
    """Clears bits by word instead of item id, for callers that have checked the ids themselves."""

    def clear(self, shares: Mapping[int, Sequence[Bits]], *, values: Values = NO_VALUES) -> list[BitsCleared]:
        """Clear the bits and settle what they finish: one write a word, parents coalesced.

        Args:
            shares: bits of exact batches, by batch id; at most ``limits.MAX_MARKS`` words in all. A word that
                is named twice is written once.
            values: what items add to the totals, of items that are marked on level 0. An item that was done
                before adds nothing.

        Returns:
            What it did to each batch, in order.

        Raises:
            BatchNotFound, BatchGone: a batch does not exist, or is gone.
            InvalidRequest: a batch is estimated, or a bit is past its last item; or a value is not a whole
                number within ±2⁵³, its batch has no such total, or its item is not marked. Nothing was
                written.
            Throttled: some words may have been written; repeat the whole call.
        """
        limits.at_most("marks", [word for bits in shares.values() for word in bits], limits.MAX_MARKS)
        for batch_id in shares:
            limits.whole("batch_id", batch_id, 0, ids.MAX_BATCH_ID)
        stops = {batch_id: max(map(self._stop, bits), default=0) for batch_id, bits in shares.items()}
        batches = self._known.reaching(stops)
        masks: dict[int, dict[WordKey, int]] = {}
        for batch_id, bits in shares.items():
            self._check_bits(bits, batches[batch_id])
            words = masks.setdefault(batch_id, {})
            for level, number, mask in bits:
                key = WordKey(batch_id, level, number)
                words[key] = words.get(key, 0) | mask
        bringing = self._checked_values(values, batches, masks)
        live: dict[WordKey, int] = {}
        for batch_id, words in masks.items():
            live |= {} if batches[batch_id].state.terminal else words
        outcomes = all_of(self.try_to_settle(live, brought=bringing)) if live else {}
        return [self._cleared(batches[batch_id], words, outcomes) for batch_id, words in masks.items()]

    def _checked_values(
        self, values: Values, batches: Mapping[int, Batch], masks: Mapping[int, Mapping[WordKey, int]]
    ) -> Brought:
        """Check the values, and give each word of level 0 those of its items."""
        words: dict[WordKey, Mapping[int, Tally]] = {}
        for batch_id, own in values.items():
            for ordinal, one in own.items():
                number, position = divmod(ordinal, self._tree.width)
                mask = masks.get(batch_id, {}).get(WordKey(batch_id, 0, number), 0)
                if not mask >> position & 1:
                    raise InvalidRequest(
                        f"item {ordinal} of batch {batch_id} brings something to the totals, but is not among"
                        " the items that are marked on level 0; nothing was done"
                    )
                check_values(one)
            if own:
                words |= brought(batches[batch_id], own.items(), self._tree)
        return words

    def _cleared(
        self, before: Batch, masks: Mapping[WordKey, int], outcomes: Mapping[WordKey, Cleared]
    ) -> BitsCleared:
        total = self._items(masks)
        if before.state.terminal:
            of_all = {"duplicates" if before.all_done else "late": total}
            return BitsCleared(before.batch_id, before.state, before.state is State.COMPLETE, **of_all)
        cleared = {key: outcomes[key].first & mask for key, mask in masks.items()}
        leaves = self._items({key: mask for key, mask in cleared.items() if not key.level})
        new = self._items(cleared)
        batch = self._known.cached(before.batch_id) or before
        self._known.touch(batch)
        width, span = self._tree.width, self._tree.span
        below = ((key.level - 1, key.number * width + at) for key, m in masks.items() for at in positions(m))
        self._note_marked(batch, ((n * span(level), (n + 1) * span(level)) for level, n in below))
        complete = batch.state is State.COMPLETE
        return BitsCleared(batch.batch_id, batch.state, complete, leaves, new - leaves, total - new)

    def _check_bits(self, share: Sequence[Bits], batch: Batch) -> None:
        """Refuse bits of items that do not exist; clearing them would corrupt the tree."""
        if batch.mode is Mode.ESTIMATED:
            raise InvalidRequest(
                f"batch {batch.batch_id} is estimated: it has no bits to mark; acknowledge by counts"
            )
        tree, root = self._tree, self._tree.root_level(batch.items)
        for bits in share:
            level, number, mask = bits
            if batch.totals and level:
                raise InvalidRequest(
                    f"{bits} is above level 0 of batch {batch.batch_id}, which has totals: mark its items on"
                    " level 0; nothing was done"
                )
            if not (0 <= level <= root and number >= 0 and 0 < mask <= tree.full):
                raise InvalidRequest(f"{bits} is not in the tree of batch {batch.batch_id}; nothing was done")
            if self._stop(bits) > batch.items:
                raise InvalidRequest(
                    f"{bits} is past the {batch.items} items of batch {batch.batch_id}; nothing was done"
                )

    def _stop(self, bits: Bits) -> int:
        """One past the last item below the highest of the bits."""
        tree = self._tree
        return (bits.number * tree.width + bits.mask.bit_length()) * tree.span(bits.level - 1)

    def _items(self, masks: Mapping[WordKey, int]) -> int:
        """Number of items below the bits of the masks."""
        return sum(self._tree.below(key.level, mask) for key, mask in masks.items())
