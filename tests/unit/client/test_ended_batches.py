"""What a process knows of the ends of batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fanin import Tracker
from fanin.client import ended_batches
from fanin.client.ended_batches import EndedBatches
from fanin.domain.batch import Mode, State
from fanin.domain.marks import Count, Marked, Receipt
from fanin.errors import BatchGone, BatchNotFound


def told(*receipts: Receipt) -> Marked:
    return Marked(receipts)


def receipt(batch_id: int, state: State) -> Receipt:
    return Receipt(batch_id, "", state, complete=state is State.COMPLETE)


@pytest.mark.parametrize("state", State)
def test_a_receipt_tells_of_an_end(state: State) -> None:
    ended = EndedBatches(lambda: 0.0)
    ended.learn([], told(receipt(7, state)))
    assert (7 in ended) is state.terminal
    assert ended.complete(7) is (state is State.COMPLETE)


def test_a_refusal_tells_of_a_batch_that_is_gone() -> None:
    ended = EndedBatches(lambda: 0.0)
    gone, unknown = BatchGone("removed"), BatchNotFound("no such batch")
    ended.learn(
        ["7:g:0", Count(8, 1), "9:g:0", "x:g:0"], Marked(refused={0: gone, 1: gone, 2: unknown, 3: gone})
    )
    assert [n for n in range(10) if n in ended] == [7, 8]
    assert not ended.complete(7)


def test_an_end_is_for_ever_even_if_an_older_answer_comes_after_it() -> None:
    ended = EndedBatches(lambda: 0.0)
    ended.learn([], told(receipt(7, State.CANCELLED), receipt(7, State.OPEN)))
    assert 7 in ended
    assert ended.age(7) is None


def test_the_age_is_that_of_the_last_answer_about_a_live_batch() -> None:
    now = 10.0
    ended = EndedBatches(lambda: now)
    assert ended.age(7) is None
    ended.learn([], told(receipt(7, State.OPEN)))
    now = 12.5
    assert ended.age(7) == 2.5


def test_the_first_time_is_told_once() -> None:
    ended = EndedBatches(lambda: 0.0)
    ended.gone(7)
    assert [ended.first_time(7), ended.first_time(7)] == [True, False]


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_batches, "_MOST", 3)
    ended = EndedBatches(lambda: 0.0)
    ended.learn([], told(*(receipt(n, State.CLOSED) for n in range(10))))
    ended.learn([], told(*(receipt(n, State.CANCELLED) for n in range(5))))
    assert [n for n in range(5) if n in ended] == [2, 3, 4]
    assert [n for n in range(10) if ended.age(n) is not None] == [7, 8, 9]


def test_a_tracker_learns_from_every_answer() -> None:
    tracker = Tracker.in_memory()
    for end in (tracker.cancel, tracker.close):
        batch = tracker.open()
        assert batch.batch_id not in tracker.ended
        end(batch.batch_id)
        assert batch.batch_id in tracker.ended
    other = tracker.open()
    tracker.ledger.cancel(other.batch_id)
    tracker.status(other.batch_id)
    assert other.batch_id in tracker.ended


PROOFS: list[dict[str, Any]] = [{"first": 1}, {"duplicates": ("7:g:0",)}, {"held": 1}]
"""What only the receipt of an exact batch says."""


@pytest.mark.parametrize(
    ("what", "known"),
    [
        *((what, known) for what in PROOFS for known in (None, Mode.EXACT)),
        *((what, known) for what in ({"ranged": 1}, {"late": 1}) for known in (None, *Mode)),
    ],
)
def test_a_complete_batch_has_ended_if_it_is_exact_for_certain(
    what: dict[str, Any], known: Mode | None
) -> None:
    """An estimated batch may be complete before all of its work is done."""
    ended, exact = EndedBatches(lambda: 0.0), what in PROOFS
    row = Tracker.in_memory().open()
    if known is not None:
        ended.note(replace(row, mode=known))

    ended.learn([], told(Receipt(row.batch_id, "", State.COMPLETE, complete=True, **what)))

    assert (row.batch_id in ended) is (exact or known is Mode.EXACT)
    assert ended.doubtful(row.batch_id) is (known is None and not exact)
    ended.note(replace(row, state=State.COMPLETE))
    assert row.batch_id in ended
    assert not ended.doubtful(row.batch_id)


@pytest.mark.parametrize("gone", [True, False])
def test_a_batch_whose_end_is_in_doubt_is_asked_about_once(gone: bool) -> None:
    """Else each of its messages would read it once more."""
    now = 10.0
    ended = EndedBatches(lambda: now)
    ended.learn([], told(Receipt(7, "", State.COMPLETE, complete=True, ranged=1)))
    assert ended.doubtful(7)

    # When it turns out that it was removed, or no answer comes
    if gone:
        ended.gone(7)
    else:
        ended.silent(7)
    now = 12.5

    # Then it has ended, or is believed to live for a while
    assert not ended.doubtful(7)
    assert (7 in ended, ended.age(7)) == ((True, None) if gone else (False, 2.5))


@pytest.mark.parametrize("state", [State.CANCELLED, State.TIMED_OUT, State.ORPHANED])
def test_of_an_estimated_batch_every_other_end_is_one(state: State) -> None:
    ended, row = EndedBatches(lambda: 0.0), Tracker.in_memory().open(mode="estimated")
    ended.note(replace(row, state=state))
    assert row.batch_id in ended
