"""fanin ack, fail."""

from __future__ import annotations

import pytest

from fanin.cli.exits import ExitCode


@pytest.fixture
def group(tracker):
    return tracker.add(tracker.open(user_key="k").batch_id, 10)


def test_ack_takes_ids_and_ranges(run, tracker, group):
    result = run("ack", group[0], group[0], "--range", f"{group.prefix}:2..5", "--json")
    [receipt] = result.document["batches"]
    assert (receipt["first"], receipt["duplicates"], receipt["ranged"]) == (1, [group[0]], 3)
    assert [(span.start, span.stop) for span in tracker.iter_missing(group.batch_id)] == [(1, 2), (5, 10)]


@pytest.mark.parametrize(
    ("text", "left"), [("", []), (":3..", [(0, 3)]), (":..3", [(3, 10)]), (":4..5", [(0, 4), (5, 10)])]
)
def test_ranges_are_half_open_and_either_end_may_be_left_out(run, tracker, group, text, left):
    assert run("ack", "--range", group.prefix + text).exit_code == 0
    assert [(span.start, span.stop) for span in tracker.iter_missing(group.batch_id)] == left


def test_ids_come_from_stdin_line_by_line(run, tracker, group):
    result = run("ack", "-", stdin="\n".join(group) + "\r\n\n")
    assert result.exit_code == 0, result.stderr
    assert list(tracker.iter_missing(group.batch_id)) == []


def test_counts_go_to_estimated_batches(run, tracker):
    batch = tracker.open(mode="estimated").batch_id
    tracker.add(batch, 5)
    tracker.close(batch)
    assert run("ack", "--count", f"{batch}=5", "--json").document["batches"][0]["complete"]


def test_fail_takes_a_reason_for_all_and_for_each(run, tracker, group):
    assert run("fail", group[1], "--reason", "torn").exit_code == 0
    assert run("fail", "-", "--reason", "wet", stdin=f"{group[0]}\n{group[2]}\tlate\n").exit_code == 0
    assert [failure.reason for failure in tracker.iter_failures(group.batch_id)] == [
        "wet",
        "torn",
        "late",
    ]


@pytest.mark.parametrize("command", ["ack", "fail"])
def test_nothing_named_is_wrong_usage(run, command):
    assert run(command).exit_code == ExitCode.USAGE
