"""Merging the answers to one call that was sent as several requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fanin.domain.acks import Receipt
from fanin.domain.reports import Verdict


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
        )
    return list(merged.values())


def merge_verdicts(pages: Iterable[Verdict]) -> Verdict:
    """One verdict on a whole batch from the verdicts on its pages.

    Args:
        pages: at least one, in order.
    """
    first, *others = pages
    verdict = first
    for page in others:
        verdict = replace(
            page,
            pending=verdict.pending + page.pending,
            disagreements=verdict.disagreements + page.disagreements,
            repaired=verdict.repaired or page.repaired,
        )
    return verdict
