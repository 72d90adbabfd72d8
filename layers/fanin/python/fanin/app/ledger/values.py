"""What acknowledged items bring to the totals of their batch: checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from fanin.app.ledger.ack_request import Share
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode
from fanin.domain.totals import Sums, in_order, plus
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


def counted_sums(share: Share, batch: Batch) -> Sums:
    """What a share adds to the totals of an estimated batch, repeats included."""
    names = tuple(batch.totals)
    values = (*(values for _, values in share.results), *share.counted_totals)
    each = (in_order(one, names, batch_id=batch.batch_id) for one in values)
    return reduce(plus, each, (0,) * len(names)) if names else ()
