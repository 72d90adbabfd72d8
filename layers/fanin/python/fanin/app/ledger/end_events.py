"""The event that tells of the end of a batch: made of what a ledger says about it, and cut to what fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fanin import names
from fanin.app.api import Ledger
from fanin.app.ledger.kinds import OnEnd
from fanin.app.ports.events import Event
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode
from fanin.domain.reports import FailedItem
from fanin.wire.batches import BATCH
from fanin.wire.items import MISSING_RANGE

LISTED: Final = 100
"""How many missing ranges and failed items an event lists; the API pages through the rest."""
QUOTED: Final = 256
"""How many characters of a reason an event quotes."""
COUNTED: Final = 100
"""How many pages of failed items are counted for an event, of up to 394 each; it says if there are more."""


def end_event(ledger: Ledger, batch: Batch, *, counted: Batch, at: int, on_end: OnEnd | None = None) -> Event:
    """The event of the end of a batch.

    Args:
        ledger: lists failed and missing items of the batch.
        batch: the row, in its terminal state.
        counted: the row, with its held items and its totals counted.
        at: when it ended, ms since the epoch.
        on_end: what the pattern that stands on the batch adds.
    """
    event = Event(
        id=f"{batch.batch_id}.{batch.state}",
        detail_type=names.DETAIL_TYPES[batch.state],
        detail=_detail(ledger, counted),
        time=at,
    )
    return _fitted(on_end(ledger, batch, event) if on_end else event)


def _detail(ledger: Ledger, batch: Batch) -> Mapping[str, object]:
    """The batch as the API shows it, with the first of its failed items and missing ranges."""
    detail: dict[str, object] = {**BATCH.encode(replace(batch, attention=None))}
    detail |= _failed(ledger, batch)
    if batch.mode is Mode.EXACT and not batch.all_done:
        missing = ledger.missing(batch.batch_id, limit=LISTED)
        detail["missing"] = [MISSING_RANGE.encode(found) for found in missing.ranges]
        detail["missing_more"] = missing.cursor is not None
    return detail


def _fitted(event: Event) -> Event:
    """Cut the lists of an event that the bus would refuse for ever, and say so in its detail."""
    lists = {name: listed for name, listed in event.detail.items() if isinstance(listed, list)}
    most, fitted = LISTED, event
    while fitted.size > limits.MAX_ENTRY and most:
        most //= 2
        cut: dict[str, object] = {name: listed[:most] for name, listed in lists.items()}
        if cut.get("missing") != lists.get("missing"):
            cut["missing_more"] = True
        fitted = event._replace(detail={**event.detail, **cut, "truncated": True})
    return fitted


def _failed(ledger: Ledger, batch: Batch) -> Mapping[str, object]:
    """How many items failed (a lower bound if ``failed_more``), and the first of them."""
    count = 0
    listed: list[FailedItem] = []
    cursor: str | None = None
    for _ in range(COUNTED if batch.failed_more or batch.failed else 0):
        page = ledger.failures(batch.batch_id, cursor=cursor, limit=limits.MAX_PAGE)
        failed = [failure for failure in page.failures if not failure.held]
        count += len(failed)
        listed += failed[: LISTED - len(listed)]
        cursor = page.cursor
        if cursor is None or (not batch.failed_more and len(listed) == LISTED):
            break
    return {
        "failed": count if batch.failed_more else batch.failed,
        "failed_more": batch.failed_more and cursor is not None,
        "failures": [
            {"ordinal": one.ordinal, "item": one.item, "reason": one.reason[:QUOTED]} for one in listed
        ],
    }
