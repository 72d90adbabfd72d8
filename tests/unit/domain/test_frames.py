"""Frames: their batch, what is missing of them, and the mark of a request to repeat."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.batch import Batch, Kind, OpenBatch, State, touched
from fanin.domain.frames import Frame, OpenFrame, is_marked, mark_of

BATCH = Batch(
    batch_id=7,
    salt=b"",
    created_at=0,
    touched_at=0,
    expires_at=9,
    open_idle_ttl=1,
    closed_idle_ttl=60,
    state=State.CLOSED,
    kind=Kind.FRAME,
    items=5,
    user_key="day 7",
    metadata={"source": "orders"},
)


def test_a_frame_is_a_closed_batch_of_its_size() -> None:
    request = OpenFrame(5, "orders", "billing", "https://sqs/replies", 60, "day 7")

    assert request.batch() == OpenBatch(
        user_key="day 7",
        idle_ttl=60,
        metadata={"source": "orders", "destination": "billing", "reply_to": "https://sqs/replies"},
        kind=Kind.FRAME,
        size=5,
    )


def test_what_is_not_said_of_a_frame_is_not_in_its_metadata() -> None:
    assert OpenFrame(5, destination="billing").batch().metadata == {"destination": "billing"}


def test_a_frame_reads_back_from_its_batch() -> None:
    assert Frame.of(BATCH) == Frame(7, State.CLOSED, 5, 60, {"source": "orders"}, "day 7")


def test_a_page_of_what_is_missing_replaces_the_one_before() -> None:
    first = Frame.of(BATCH).lacking(((0, 2),), "more")

    assert first.lacking(((3, 4),), None) == replace(Frame.of(BATCH), missing=((3, 4),))


@given(st.integers(1, 2**42), st.integers(10, 86_400))
def test_a_marked_frame_is_told_from_one_that_was_active(now: int, ttl: int) -> None:
    # Given a frame that was active, and one that was asked to repeat, at the same time
    active = replace(BATCH, closed_idle_ttl=ttl, touched_at=touched(now, ttl))
    marked = replace(active, touched_at=mark_of(now, ttl))

    # Then only the mark is one, and the next activity is later than it
    assert is_marked(marked)
    assert not is_marked(active)
    assert touched(now, ttl) > marked.touched_at


@pytest.mark.parametrize("ttl", [60, 3_600])
def test_a_mark_moves_the_frame_a_whole_idle_time_on(ttl: int) -> None:
    now = 1_790_000_000_000
    marked = replace(BATCH, closed_idle_ttl=ttl, touched_at=mark_of(now, ttl), expires_at=2**40)

    assert now + ttl * 900 - 1 <= marked.idle_at <= now + ttl * 1_000
