"""Merging the answers to one call that was sent as several requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from fanin.adapters.backoff import Backoff
from fanin.domain.acks import Acks, Receipt, join
from fanin.domain.reports import Verdict
from fanin.errors import FaninError, OutcomeUnknown, PartlyMarked, ServiceUnavailable, Throttled

REPEATS: Final = Backoff(tries=5, base=0.2, cap=2.0)
"""Tries of an acknowledgement of which some items are left, by default; each marks more of them."""


def repeat_rest(
    call: Callable[[Acks], Sequence[Receipt]], acks: Acks, backoff: Backoff = REPEATS
) -> Sequence[Receipt]:
    """Acknowledge, and repeat what is left when the service marks a part.

    Args:
        call: makes the call.
        acks: what to mark.
        backoff: waits between tries.

    Returns:
        The receipts of all calls that marked something; ``merge_receipts`` makes one of those of a batch.

    Raises:
        PartlyMarked: with all receipts, when something is left after all tries, or a repeat was refused.
        OutcomeUnknown: an estimated batch may have counted what the last try was for.
        Throttled, ServiceUnavailable: the service did not say that anything is marked. Some items of exact
            batches may be, so all of it may be repeated.
        FaninError: nothing was marked.
    """
    receipts: list[Receipt] = []
    busy: PartlyMarked | None = None
    for _ in backoff:
        try:
            return [*receipts, *call(acks)]
        except PartlyMarked as partly:
            receipts += partly.receipts
            acks, busy = partly.rest, partly
        except OutcomeUnknown:
            raise
        except FaninError as error:
            if busy is None:
                raise
            raise _left(error, receipts, acks) from error
    raise _left(busy, receipts, acks) from busy


def mark_all(mark: Callable[[Acks], Sequence[Receipt]], requests: Iterable[Acks]) -> list[Receipt]:
    """Make the requests of one call, one after another.

    Args:
        mark: makes one request.
        requests: what to mark; read to the end if one of them is not marked whole.

    Raises:
        PartlyMarked: some items are marked; its rest names all others, also those of requests not made.
        Throttled, ServiceUnavailable: the service did not say that anything is marked, though some items of
            exact batches may be.
    """
    receipts: list[Receipt] = []
    waiting = iter(requests)
    for acks in waiting:
        try:
            receipts += mark(acks)
        except (Throttled, ServiceUnavailable) as error:
            rest = acks
            if isinstance(error, PartlyMarked):
                receipts += error.receipts
                rest = error.rest
            elif not receipts:
                raise
            raise _left(error, receipts, join([rest, *waiting])) from error
    return merge_receipts(receipts)


def _left(error: Exception | None, receipts: Iterable[Receipt], rest: Acks) -> PartlyMarked:
    return PartlyMarked(str(error), receipts=merge_receipts(receipts), rest=rest, retry_after=1)


def merge_receipts(receipts: Iterable[Receipt]) -> list[Receipt]:
    """One receipt for each batch, in the order in which the batches first appear.

    Counts and duplicates add up. A batch is complete if any of its receipts says so; state and the like are
    those of its last receipt.
    """
    merged: dict[int, Receipt] = {}
    for receipt in receipts:
        before = merged.get(receipt.batch_id)
        if before is None:
            merged[receipt.batch_id] = receipt
            continue
        merged[receipt.batch_id] = replace(
            receipt,
            complete=before.complete or receipt.complete,
            first=before.first + receipt.first,
            duplicates=before.duplicates + receipt.duplicates,
            ranged=before.ranged + receipt.ranged,
            late=before.late + receipt.late,
            held=before.held + receipt.held,
        )
    return list(merged.values())


def merge_verdicts(pages: Iterable[Verdict]) -> Verdict:
    """One verdict on a whole batch from the verdicts on its pages.

    Args:
        pages: at least one, in order.
    """
    first, *others = pages
    verdict = first
    # Pages meet the words above their borders both, and say the same of them.
    for page in others:
        verdict = replace(
            page,
            pending=verdict.pending + page.pending,
            disagreements=tuple(dict.fromkeys(verdict.disagreements + page.disagreements)),
            repaired=verdict.repaired or page.repaired,
        )
    return verdict
