"""What acknowledged items bring to the totals of their batch: checked before anything is written."""

from __future__ import annotations

from functools import reduce

from fanin.app.ledger.ack_request import Share
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode
from fanin.domain.totals import Sums, in_order, plus
from fanin.errors import InvalidRequest, RequestTooLarge


def check_totals(share: Share, batch: Batch) -> None:
    """Refuse values that cannot be added.

    Raises:
        InvalidRequest: the batch has no such total, or an item is named twice with different values.
        RequestTooLarge: ranges of a batch with totals have more items than one call may mark one by one.
    """
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
    if names and share.ranged > limits.MAX_IDS:
        raise RequestTooLarge(
            f"batch {batch.batch_id} has totals, so its ranges are marked item by item: name at most"
            f" {limits.MAX_IDS} items by ranges in one call, not {share.ranged}"
        )


def counted_sums(share: Share, batch: Batch) -> Sums:
    """What a share adds to the totals of an estimated batch, repeats included."""
    names = tuple(batch.totals)
    values = (*(values for _, values in share.results), *share.counted_totals)
    each = (in_order(one, names, batch_id=batch.batch_id) for one in values)
    return reduce(plus, each, (0,) * len(names)) if names else ()
