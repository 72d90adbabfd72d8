"""Batches and receipts as text for people."""

import io
from dataclasses import replace
from datetime import timedelta

import pytest
from rich.console import Console

from fanin import Tracker
from fanin.cli.listing import FactSheet, Table
from fanin.cli.tables import batch_facts, batches_table, done, progress_facts, receipts_table
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.reports import Progress


def shown(renderable) -> list[str]:
    """The lines of a table, without those that are empty or a rule."""
    screen = io.StringIO()
    Console(file=screen, width=120).print(renderable)
    lines = (line.rstrip() for line in screen.getvalue().splitlines())
    return [line for line in lines if line.strip(" ─")]


@pytest.fixture
def batch(tracker) -> Batch:
    opened = tracker.open(user_key="catalog", metadata={"a": "1", "b": "2"}, limit=5_000)
    tracker.add(opened.batch_id, 1_234)
    return tracker.status(opened.batch_id).batch


def test_columns_of_numbers_are_aligned_to_the_right():
    made = Table("name", "items", right=("items",))
    made.add_row("a", "1")
    made.add_row("b", "1,000")
    _, first, second = shown(made)
    assert first.endswith("      1")
    assert len(first) == len(second)


def test_facts_leave_out_what_is_empty():
    lines = shown(FactSheet([("a", "x"), ("b", None), ("c", ""), ("d", 0)]))
    assert [line.split() for line in lines] == [["a", "x"], ["d", "0"]]


def test_a_batch_has_its_facts_with_thousands_set_apart(batch):
    known = dict(batch_facts(batch))
    assert (known["items"], known["limit"], known["state"]) == (1_234, 5_000, "open")
    assert known["metadata"] == "a=1, b=2"
    assert (known["closed"], known["ended"], known["deadline"]) == (None, None, None)
    assert known["opened"].plain.endswith("Z")


def test_a_batch_that_ended_with_something_missing_is_partial(tracker):
    row = tracker.cancel(tracker.open().batch_id)
    assert dict(batch_facts(row))["state"] == "cancelled"
    assert dict(batch_facts(replace(row, partial=True)))["state"] == "cancelled, partial"


def test_progress_is_a_share_if_it_is_exact_and_bounds_if_not(batch):
    assert dict(progress_facts(Progress(batch, 0, 1_234)))["cost"] is None  # of a service that does not say
    assert done(Progress(batch, 617, 617)) == "617 of 1,234 (50.0%)"
    assert done(Progress(batch, 600, 640)) == "600 to 640 of 1,234"
    assert done(Progress(replace(batch, items=0), 0, 0)) == "0 of 0"
    assert dict(progress_facts(Progress(batch, 0, 1_234)))["done"].shown == "0 to 1,234 of 1,234"


def test_receipts_have_a_row_for_each_batch(tracker):
    one, two = (tracker.add(tracker.open().batch_id, 3) for _ in range(2))
    tracker.ack(one[0])
    receipts = tracker.ack([one[0], one[1], two[2]])
    head, *rows = shown(receipts_table(receipts))
    assert head.split() == ["batch", "state", "first", "duplicates", "ranged", "late", "held"]
    found = {row.split()[0]: row.split()[2:] for row in rows}
    assert found == {
        str(one.batch_id): ["1", "1", "0", "0", "0"],
        str(two.batch_id): ["1", "0", "0", "0", "0"],
    }


def test_batches_have_a_row_each(tracker, batch):
    other = tracker.open(user_key="other")
    rows = shown(batches_table([batch, other]))[1:]
    assert [row.split()[0] for row in rows] == [str(batch.batch_id), str(other.batch_id)]
    assert "1,234" in rows[0]
    assert rows[1].endswith("other")


def test_batches_show_their_totals_where_the_list_knows_them(batch):
    brought = replace(batch, totals={"rows": 1_635, "cents": -10}, totals_exact=True)
    estimated = replace(brought, mode=Mode.ESTIMATED, totals_exact=False)
    running = replace(brought, totals={"rows": 0, "cents": 0}, totals_exact=False)
    head, *rows = shown(batches_table([brought, estimated, running]))
    assert head.split()[-1] == "totals"
    assert rows[0].endswith("catalog   1,635 rows, -10 cents")
    assert rows[1].endswith("1,635 rows, -10 cents, repeats included")
    assert rows[2].endswith("catalog")  # zeros would look like sums
    assert "totals" not in shown(batches_table([batch]))[0]


def test_batches_with_failures_fit_80_columns(batch):
    row = replace(batch, batch_id=245_218_792_084_582, items=5_000, failed=40, state=State.CANCELLED)
    screen = io.StringIO()
    Console(file=screen, width=80).print(batches_table([row]))
    head, _, first, *_ = (line for line in screen.getvalue().splitlines() if line.strip())
    assert head.split() == ["batch", "state", "items", "failed", "opened", "user", "key"]
    assert first.split()[0] == str(row.batch_id)
    assert first.rstrip().endswith("catalog")


def test_a_batch_that_ended_before_its_deadline_shows_none():
    tracker = Tracker.in_memory()
    batch = tracker.open(deadline=timedelta(hours=1))
    assert dict(batch_facts(batch))["deadline"]
    assert dict(batch_facts(tracker.cancel(batch.batch_id)))["deadline"] is None
