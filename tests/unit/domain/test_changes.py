"""Changes of the row of a batch: when they fit, and what they leave."""

from dataclasses import replace

import pytest

from fanin.domain.batch import Batch, State
from fanin.domain.changes import HAS_ENDED, IS_LIVE, Change, allocation, allocation_of, where
from fanin.domain.ids import MAX_ITEMS

ROW = Batch(8, b"s", 0, 0, expires_at=9, open_idle_ttl=60, closed_idle_ttl=60, items=5)


@pytest.mark.parametrize(
    ("is_", "fitting"), [("=", [5]), ("<>", [4, 6]), ("<", [6]), ("<=", [5, 6]), (">", [4])]
)
def test_a_field_is_compared_with_a_value(is_, fitting):
    assert [n for n in (4, 5, 6) if Change([where("items", is_, n)]).fits(ROW)] == fitting


def test_all_conditions_must_hold_and_of_each_one_test():
    closed, few = where("state", "in", (State.CLOSED, State.COMPLETE)), where("items", "<", 9)

    assert Change([few, closed + few]).fits(ROW)
    assert not Change([few, closed]).fits(ROW)
    assert Change([closed]).fits(replace(ROW, state=State.COMPLETE))


@pytest.mark.parametrize("state", State)
def test_a_batch_lives_or_has_ended(state):
    row = replace(ROW, state=state)

    assert Change([HAS_ENDED]).fits(row) is state.terminal
    assert Change([IS_LIVE]).fits(row) is not state.terminal


def test_what_is_set_and_added_is_in_the_row_and_the_place_in_the_index_is_not():
    row = replace(ROW, totals={"km": 1, "stops": 2})

    changed = Change([], {"touched_at": 7, "due_at": 70}, {"acked": 3}, sums=(5, -2)).of(row)

    assert changed == replace(row, touched_at=7, acked=3, totals={"km": 6, "stops": 0})


@pytest.mark.parametrize(
    ("most", "n", "fits"),
    [(None, MAX_ITEMS - 5, True), (None, MAX_ITEMS - 4, False), (7, 2, True), (7, 3, False)],
)
def test_a_batch_takes_as_many_items_as_it_may_have(most, n, *, fits):
    row = replace(ROW, max_items=most)

    assert allocation(n, {}, room=None, most=most).fits(row) is fits
    assert allocation_of(row, n, {}, by_item=False).fits(row) is fits


def test_an_item_adds_to_a_batch_that_drains_and_it_is_noted():
    row = replace(ROW, draining_at=3, limit=9, pending_bound=7)

    assert not allocation_of(row, 2, {}, by_item=False).fits(row)
    assert not allocation_of(row, 3, {}, by_item=True).fits(row)
    by_item = allocation_of(row, 2, {}, by_item=True, keyed=True)
    assert by_item.fits(row)
    assert by_item.of(row) == replace(row, items=7, pending_bound=9, grown=2, keyed=2)
    assert not by_item.fits(replace(row, items=6))
