"""How far a scatter is, and what became of a reply."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.domain.batch import Batch, State
from fanin.domain.scatter import ReplyReceipt, Scattered

BATCH = Batch(1, b"", 0, 0, 9, 1, 1, state=State.CLOSED, items=10)
SCATTERED = Scattered(BATCH, "c", received=6, failed=1, retries=0, max_retries=2, quorum=None)


def test_missing_are_those_who_neither_replied_nor_failed() -> None:
    assert SCATTERED.missing == 3


@pytest.mark.parametrize(
    ("state", "starting", "ready"),
    [
        (State.OPEN, True, False),
        (State.CLOSED, False, False),
        (State.COMPLETE, False, True),
        (State.TIMED_OUT, False, True),
        (State.CANCELLED, False, True),
    ],
)
def test_a_scatter_starts_then_waits_then_is_ready(state: State, starting: bool, ready: bool) -> None:
    scattered = replace(SCATTERED, batch=replace(BATCH, state=state))

    assert (scattered.starting, scattered.ready) == (starting, ready)


@pytest.mark.parametrize(
    ("first", "late", "duplicate"), [(True, False, False), (False, True, False), (False, False, True)]
)
def test_a_reply_is_first_or_late_or_a_duplicate(first: bool, late: bool, duplicate: bool) -> None:
    assert ReplyReceipt("i", 1, State.CLOSED, first=first, late=late).duplicate is duplicate
