"""Receipts: what an acknowledgement did to one batch, derived from the bits that its writes found."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from fanin.app.ledger.ack_request import Named, Share, Span
from fanin.app.ledger.settle import Brought
from fanin.app.ledger.values import brought
from fanin.app.ports.words import Cleared, Outcome, WordKey
from fanin.domain.acks import Receipt
from fanin.domain.batch import Batch, State
from fanin.domain.tree import Tree
from fanin.errors import FaninError


@dataclass(frozen=True, slots=True)
class Plan:
    """What a share clears in its batch.

    Attributes:
        share: the named items of the batch.
        named: bits of the items that are named by their ids: number of the word of level 0 → mask.
        marks: all bits to clear, on any level, those of ``named`` included.
        covered: numbers of the words of ``named`` that a range marked as done before, higher up in the tree.
        brought: what items bring to the totals of the batch.
    """

    share: Share
    named: Mapping[int, int]
    marks: Mapping[WordKey, int]
    covered: frozenset[int] = frozenset()
    brought: Brought = field(default_factory=dict)


def plan(share: Share, batch: Batch, tree: Tree) -> Plan:
    """Find the bits that a share clears in a live, exact batch.

    Ranges of a batch with totals are marked on level 0: a bit higher up would pass over what items that are
    done have brought to unfinished words below it.
    """
    named = tree.marks(share.ordinals)
    marks = {WordKey(share.batch_id, 0, number): mask for number, mask in named.items()}
    for span in share.spans:
        for key, mask in _covered(span, batch, tree).items():
            marks[key] = marks.get(key, 0) | mask
    return Plan(share, named, marks, brought=brought(batch, share.results, tree, exact=share.exact_values))


def _covered(span: Span, batch: Batch, tree: Tree) -> dict[WordKey, int]:
    """The bits that stand for a range."""
    if batch.totals:
        leaves = tree.marks(range(span.start, span.stop))
        return {WordKey(batch.batch_id, 0, number): mask for number, mask in leaves.items()}
    cover = tree.cover(span.start, span.stop, batch.items)
    return {WordKey(batch.batch_id, mark.level, mark.number): mark.mask for mark in cover}


def split(plan: Plan, batch: Batch, outcomes: Mapping[WordKey, Outcome], tree: Tree) -> tuple[Plan, Share]:
    """Divide a plan into what its writes have settled, and the share that remains.

    Args:
        plan: what was to be cleared.
        batch: the row from which the plan was made.
        outcomes: what became of each word.
        tree: shape of the tree.
    """
    share = plan.share
    left = {key for key in plan.marks if isinstance(outcomes[key], FaninError)}
    words = {key.number for key in left if key.level == 0}

    def settled(span: Span) -> bool:
        return left.isdisjoint(_covered(span, batch, tree))

    spans = {span: settled(span) for span in share.spans} if left else dict.fromkeys(share.spans, True)
    done = replace(
        share,
        named=_only(share.named, words, tree, inside=False),
        spans=tuple(span for span in share.spans if spans[span]),
    )
    rest = replace(
        share,
        named=_only(share.named, words, tree, inside=True),
        spans=tuple(span for span in share.spans if not spans[span]),
        notes=tuple(note for note in share.notes if note.ordinal // tree.width in words),
    )
    named = {number: mask for number, mask in plan.named.items() if number not in words}
    return replace(plan, share=done, named=named), rest


def _only(named: tuple[Named, ...], words: Collection[int], tree: Tree, *, inside: bool) -> tuple[Named, ...]:
    """The items that lie inside some words of level 0, or outside of them."""
    kept = (
        Named(block, [ordinal for ordinal in ordinals if (ordinal // tree.width in words) is inside])
        for block, ordinals in named
    )
    return tuple(one for one in kept if one.ordinals)


def receipt(plan: Plan, batch: Batch, outcomes: Mapping[WordKey, Outcome], tree: Tree) -> Receipt:
    """The receipt of a share whose bits were cleared.

    Args:
        plan: what was to be cleared.
        batch: the row as it is after the writes.
        outcomes: what each write found.
        tree: shape of the tree.
    """

    def cleared(number: int) -> int:
        outcome = outcomes[WordKey(plan.share.batch_id, 0, number)]
        return outcome.first if isinstance(outcome, Cleared) and number not in plan.covered else 0

    first = {number: mask & cleared(number) for number, mask in plan.named.items()}
    duplicates = tuple(_duplicates(plan.share, first, tree))
    return Receipt(
        batch.batch_id,
        batch.user_key,
        batch.state,
        complete=batch.state is State.COMPLETE,
        first=plan.share.items - len(duplicates),
        duplicates=duplicates,
        ranged=plan.share.ranged,
    )


def counted(share: Share, batch: Batch) -> Receipt:
    """The receipt of a share that an estimated batch has counted."""
    complete = batch.state is State.COMPLETE
    return Receipt(batch.batch_id, batch.user_key, batch.state, complete, ranged=share.total)


def ended(share: Share, batch: Batch) -> Receipt:
    """The receipt of a share of a batch that had ended before: nothing was written."""
    complete = batch.state is State.COMPLETE
    if not batch.all_done:
        return Receipt(batch.batch_id, batch.user_key, batch.state, complete, late=share.total)
    duplicates = tuple(item for named in share.named for item in named.items)
    return Receipt(
        batch.batch_id, batch.user_key, batch.state, complete, duplicates=duplicates, ranged=share.ranged
    )


def _duplicates(share: Share, first: Mapping[int, int], tree: Tree) -> Iterator[str]:
    """Ids of items that were done already, or are named twice in the request."""
    if sum(mask.bit_count() for mask in first.values()) == share.items:
        return
    width, bits = tree.width, tree.bits
    seen: set[int] = set()
    for block, ordinals in share.named:
        prefix = block.prefix
        for ordinal in ordinals:
            if ordinal in seen or not first[ordinal // width] & bits[ordinal % width]:
                yield f"{prefix}:{ordinal - block.first}"
            seen.add(ordinal)
