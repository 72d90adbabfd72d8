"""What acknowledged items bring to the totals of their batch: checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from fanin.app.ledger.ack_request import Share
from fanin.app.ledger.settle import Brought
from fanin.app.ports.words import Tally, WordKey
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode
from fanin.domain.totals import Sums, in_order, plus
from fanin.domain.tree import Tree
from fanin.errors import InvalidRequest, RequestTooLarge


def check_totals(shares: Iterable[Share], batches: Mapping[int, Batch]) -> None:
    """Refuse values that cannot be added, and ranges that are too long to be marked item by item.

    Raises:
        InvalidRequest: a batch has no such total, or an item is named twice with different values.
        RequestTooLarge: ranges of batches with totals have more items than one call may mark one by one.
    """
    ranged = 0
    for share in shares:
        batch = batches[share.batch_id]
        _check_values(share, batch)
        ranged += share.ranged if batch.totals and batch.mode is Mode.EXACT else 0
    if ranged > limits.MAX_IDS:
        raise RequestTooLarge(
            "ranges of batches with totals are marked item by item: name at most"
            f" {limits.MAX_IDS} items by them in one call, not {ranged}"
        )


def _check_values(share: Share, batch: Batch) -> None:
    names = tuple(batch.totals)
    seen: dict[int, Sums] = {}
    for ordinal, values in share.results:
        sums = in_order(values, names, batch_id=batch.batch_id)
        if batch.mode is Mode.EXACT and seen.setdefault(ordinal, sums) != sums:
            raise InvalidRequest(
                f"item {ordinal} of batch {batch.batch_id} is named twice, with different totals;"
                " name it once"
            )
    for values in share.counted_totals:
        in_order(values, names, batch_id=batch.batch_id)


def brought(
    batch: Batch, values: Iterable[tuple[int, Mapping[str, int]]], tree: Tree, *, exact: bool = True
) -> Brought:
    """What items of a batch bring to its totals, by the words of level 0 that hold them.

    Args:
        batch: the row; its totals give the order of the sums.
        values: (ordinal, values by the names of totals).
        tree: the shape.
        exact: whether the values are; the sums of a nested batch may not be.

    Raises:
        InvalidRequest: the batch has no total of such a name.
    """
    names = tuple(batch.totals)
    words: dict[WordKey, dict[int, Tally]] = {}
    for ordinal, one in values:
        number, position = divmod(ordinal, tree.width)
        sums = in_order(one, names, batch_id=batch.batch_id)
        words.setdefault(WordKey(batch.batch_id, 0, number), {})[position] = Tally(sums=sums, whole=exact)
    return words


def counted_sums(share: Share, batch: Batch) -> Sums:
    """What a share adds to the totals of an estimated batch, repeats included."""
    names = tuple(batch.totals)
    values = (*(values for _, values in share.results), *share.counted_totals)
    each = (in_order(one, names, batch_id=batch.batch_id) for one in values)
    return reduce(plus, each, (0,) * len(names)) if names else ()
