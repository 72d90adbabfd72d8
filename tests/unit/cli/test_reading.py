"""fanin status, missing, failures, verify."""

from __future__ import annotations

import csv
import json

import pytest

from fanin.cli.exits import ExitCode
from fanin.domain.batch import State


@pytest.fixture
def group(tracker):
    return tracker.add(tracker.open(user_key="k").batch_id, 10)


def test_status_says_how_far(run, tracker, group):
    tracker.ack(group[:4])
    assert "done\t4\n" in run("status", group.batch_id, "--exact").stdout
    found = run("status", group.batch_id, "--exact", "--json").document
    assert (found["done_min"], found["done_max"], found["items"]) == (4, 4, 10)


def test_status_says_about_what_it_has_cost(run, tracker, group):
    tracker.ack(group)
    cost = run("status", group.batch_id, "--json").document["cost"]
    assert cost["at_least"] < cost["dollars"] < cost["at_most"]
    assert cost["estimate"] is True
    assert f"cost\t{cost['dollars']:.6f}\n" in run("status", group.batch_id).stdout


def test_results_are_lines_of_json_or_a_table(run, tracker):
    with tracker.batch(results=True) as batch:
        items = [one.item for one in batch.add(keys=["a", "b"])] + list(batch.add(1))
    tracker.ack(items[0], result={"price": 8, "name": "Grün, 1"})
    tracker.ack(items[2], result=5)
    lines = run("results", batch.id).stdout.splitlines()
    assert list(map(json.loads, lines)) == [
        {"ordinal": 0, "item": items[0], "key": "a", "result": {"price": 8, "name": "Grün, 1"}},
        {"ordinal": 2, "item": items[2], "key": "", "result": 5},
    ]
    table = list(csv.reader(run("results", batch.id, "--format", "csv").stdout.splitlines()))
    assert table[0] == ["ordinal", "item", "key", "result"]
    assert (table[1][2], table[2][2]) == ("a", "")
    assert json.loads(table[1][3]) == {"price": 8, "name": "Grün, 1"}


def test_a_missing_range_is_shown_as_ack_takes_it(run, tracker):
    with tracker.batch() as batch:
        group = batch.add(9)
    tracker.ack([group[0], group[1], group[5]])
    shown = run("missing", batch.id).stdout
    ranges = [word for word in shown.split() if ":" in word]
    assert ("2..5" in shown, "6..9" in shown, len(ranges)) == (True, True, 2)
    run("ack", "--range", ranges[0])
    assert [(found.start, found.stop) for found in tracker.missing(batch.id).ranges] == [(6, 9)]
    run("ack", "--range", ranges[1])
    nothing = run("missing", batch.id, "--all")
    assert (nothing.stdout, nothing.stderr) == ("ordinals\titems\trange\n", "nothing is missing\n")


def test_what_is_piped_is_not_cut(run, tracker, group):
    tracker.fail(group[0], "a reason " * 50)
    shown = run("failures", group.batch_id).stdout
    assert group[0] in shown
    assert ("a reason " * 50).strip() in shown


def test_no_failures(run, group):
    assert run("failures", group.batch_id).stderr == "nothing failed\n"
    assert run("failures", group.batch_id, "--all", "--json").document == {"failures": [], "cursor": None}


def test_verify_exits_with_1_where_something_disagrees(run, tracker, group):
    # Given: a batch whose items are done and that nobody completed
    batches = tracker.ledger.ports.batches
    tracker.ack(group)
    batches.close(group.batch_id, now=0)
    # When
    result = run("verify", group.batch_id)
    # Then
    assert (result.exit_code, "left as it is" in result.stdout) == (ExitCode.WRONG, True)
    assert run("verify", group.batch_id, "--repair", "--json").document["repaired"]
    sound = run("verify", group.batch_id)
    assert (sound.exit_code, "all agrees" in sound.stdout) == (0, True)
    assert tracker.status(group.batch_id).batch.state is State.COMPLETE


def test_failures_are_counted_by_error_and_their_messages_shown(run, tracker, group):
    tracker.fail(group[:2], "row 7 is torn", message="the body")
    tracker.fail(group[2], "lost")

    found = run("failures", group.batch_id, "--by-error", "--json").document["errors"]
    assert [(one["error"], one["failed"], one["kept"]) for one in found] == [
        ("row <n> is torn", 2, 2),
        ("lost", 1, 0),
    ]
    assert run("failures", group.batch_id, "--message", group[1]).stdout.strip() == "the body"
    assert run("failures", group.batch_id, "--message", "0", "--json").document["message"]["body"] == (
        "the body"
    )


def test_a_message_that_was_not_kept_exits_with_1(run, tracker, group):
    tracker.fail(group[2], "lost")
    assert run("failures", group.batch_id, "--message", group[2]).exit_code == ExitCode.WRONG
