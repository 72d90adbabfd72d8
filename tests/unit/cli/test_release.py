"""The command ``fanin release``."""

from __future__ import annotations

import json

import pytest

from fanin import Tolerance
from fanin.domain.marks import Failure


@pytest.fixture
def held(tracker):
    batch = tracker.open(on_failure="hold")
    group = tracker.add(batch.batch_id, 6)
    tracker.fail([Failure(group[n], "no price" if n < 3 else "no customer 7") for n in range(5)])
    tracker.ack(group[5])
    tracker.close(batch.batch_id)
    return batch.batch_id


def test_all_that_is_held_is_released(run, held, tracker):
    assert run("release", str(held)).stdout == f"5 released; batch {held} is complete\n"
    assert tracker.status(held).batch.failed == 5


def test_some_of_it_by_error_and_by_range(run, held):
    assert "2 released" in run("release", str(held), "--error", "no customer").stdout
    answer = json.loads(run("release", str(held), "--range", "0..2", "--json").stdout)
    assert (answer["released"], answer["batch"]["held"], answer["batch"]["state"]) == (2, 1, "closed")


def test_what_is_no_range_is_refused(run, held):
    result = run("release", str(held), "--range", "3")
    assert result.exit_code == 2
    assert "write A..B" in result.stderr


def test_a_batch_is_opened_with_what_becomes_of_failures(run, tracker):
    options = ("--on-failure", "hold", "--tolerate-failures", "5%", "--min-sample", "20")
    batch = int(run("open", *options).stdout)

    row = tracker.status(batch).batch
    assert (row.on_failure, row.tolerated_failures) == ("hold", Tolerance(percent=5.0, min_sample=20))
    shown = run("status", str(batch)).stdout
    assert "5% of what is done, from 20 items on" in shown
    assert run("open", "--min-sample", "20").exit_code == 2


def test_held_items_are_shown_and_make_the_exit_code_once_the_batch_has_ended(run, held, tracker):
    assert "held" in run("status", str(held)).stdout
    assert run("failures", str(held)).stdout.count("\theld\t") == 5
    assert run("status", str(held), "--fail-on-failures").exit_code == 0

    tracker.cancel(held)

    assert run("status", str(held), "--fail-on-failures").exit_code == 1
    assert run("watch", str(held)).exit_code == 1


def test_the_status_says_what_to_do_about_held_items(run, held):
    said = run("status", str(held)).stderr
    assert f"fanin redrive {held}" in said
    assert f"fanin release {held}" in said

    run("release", str(held))
    assert "held items wait" not in run("status", str(held)).stderr


def test_that_nothing_matches_is_said(run, tracker):
    result = run("release", tracker.open(on_failure="hold").batch_id, "--error", "odd")
    assert result.exit_code == 0
    assert "no held item matches" in result.stderr
