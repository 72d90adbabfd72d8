"""fanin open, add, close, cancel, list, expire."""

import time

import pytest

from fanin.cli.exits import ExitCode
from fanin.domain.batch import State
from fanin.wire.json_types import encode_time


def test_open_prints_the_id(run, tracker):
    result = run("open", "--user-key", "catalog")
    batch = tracker.status(int(result.stdout)).batch
    assert (batch.user_key, batch.state) == ("catalog", State.OPEN)


def test_open_takes_everything_a_batch_has(run, tracker, group):
    deadline = encode_time(time.time_ns() // 1_000_000 + 86_400_000)
    result = run(
        *("open", "--json", "--user-key", "u", "--idle-ttl", "15m", "--lifetime", "30d"),
        *("--on-deadline", "complete", "--limit", 50, "--parent-item", group[0]),
        *("--meta", "a=b", "--meta", "c=d=e", "--deadline", deadline, "--stall-after", "5m"),
    )
    assert result.exit_code == 0, result.stderr
    found = result.document
    assert found["open_idle_ttl"] == 900
    assert (found["limit"], found["parent_item"]) == (50, group[0])
    assert (found["on_deadline"], found["deadline"]) == ("complete", deadline)
    assert found["metadata"] == {"a": "b", "c": "d=e"}
    assert tracker.status(found["batch_id"]).batch.stall_after == 300


def test_open_with_a_key_opens_once(run):
    first = run("open", "--user-key", "nightly", "--key", "run-7")
    assert run("open", "--user-key", "nightly", "--key", "run-7").stdout == first.stdout
    assert run("open", "--user-key", "nightly", "--key", "run-8").stdout != first.stdout


def test_add_prints_the_group_or_all_ids(run, tracker):
    batch = tracker.open().batch_id
    prefix = run("add", batch, 3).stdout.strip()
    assert tracker.ack(f"{prefix}:2")[0].first == 1
    ids = run("add", batch, 3, "--ids").stdout.split()
    assert tracker.ack(ids)[0].first == 3
    assert run("add", batch, 2, "--json").document["upto"] == 2


def test_add_with_a_key_adds_once(run, tracker):
    batch = tracker.open().batch_id
    first, second = (run("add", batch, 3, "--key", "x").stdout for _ in range(2))
    assert first == second
    assert tracker.status(batch).batch.items == 3


def test_close_and_cancel_say_the_state(run, group, tracker):
    assert run("close", group.batch_id).stdout.strip() == "closed"
    assert run("cancel", group.batch_id, "--json").document["state"] == "cancelled"


def test_list_follows_pages(run, tracker):
    opened = {tracker.open().batch_id for _ in range(12)}
    page = run("list", "--limit", 5, "--json").document
    assert len(page["batches"]) <= 5
    assert page["cursor"]
    every = run("list", "open", "--all", "--json").document["batches"]
    assert {batch["batch_id"] for batch in every} == opened
    assert "--cursor" in run("list", "--limit", 5).stderr


def test_without_a_state_the_list_has_what_lives_page_by_page(run, tracker):
    opened = {tracker.open().batch_id for _ in range(5)}
    closed = set()
    for _ in range(4):
        with tracker.batch() as batch:
            batch.add(1)
        closed.add(batch.id)
    found, cursor = [], ()
    while True:
        page = run("list", "--limit", 2, "--json", *cursor).document
        found += [one["batch_id"] for one in page["batches"]]
        if page["cursor"] is None:
            break
        cursor = ("--cursor", page["cursor"])
    assert sorted(found) == sorted(opened | closed)
    assert {one["batch_id"] for one in run("list", "--all", "--json").document["batches"]} == opened | closed
    assert run("list", "--cursor", "complete:x").exit_code == 2


def test_list_shows_one_state_only(run, tracker):
    opened, cancelled = tracker.open(user_key="one").batch_id, tracker.open(user_key="two").batch_id
    tracker.cancel(cancelled)
    assert [batch["batch_id"] for batch in run("list", "--json").document["batches"]] == [opened]
    shown = run("list", "cancelled").stdout
    assert "two" in shown
    assert "one" not in shown.splitlines()[1]


def test_progress_is_a_number_for_programs(run, tracker):
    group = tracker.add(tracker.open().batch_id, 8)
    tracker.ack(group[:6])
    head, row = (line.split("\t") for line in run("list", "--progress").stdout.splitlines())
    assert dict(zip(head, row, strict=True))["done"] == "6"


def test_list_finds_batches_by_user_key_in_every_state(run, tracker):
    opened, cancelled = (tracker.open(user_key="nightly").batch_id for _ in range(2))
    tracker.open(user_key="weekly")
    tracker.cancel(cancelled)

    def listed(*args):
        return {batch["batch_id"] for batch in run("list", *args, "--json").document["batches"]}

    assert listed("--user-key", "nightly") == {opened, cancelled}
    assert listed("--user-key", "nightly", "--all") == {opened, cancelled}
    assert listed("--user-key", "nightly", "cancelled") == {cancelled}
    assert listed("cancelled", "--user-key", "weekly", "--all") == set()


class TestExpire:
    def test_ends_live_batches_that_were_idle_and_says_how_many(self, run, tracker, group):
        # Given an open batch of ten items, without activity from now on
        since = encode_time(time.time_ns() // 1_000_000 + 3_600_000)
        # Then it is ended if it was idle since then, and not if it had to be idle for days
        assert run("expire", "open", "--idle-since", "7d", "--yes").stdout.strip() == "batches: 0, items: 0"
        assert run("expire", "open", "--idle-since", since, "-y").stdout.strip() == "batches: 1, items: 10"
        assert tracker.status(group.batch_id).batch.state is State.ORPHANED

    def test_removes_one_ended_batch_if_it_is_told_to(self, run, tracker, group):
        tracker.cancel(group.batch_id)
        unasked = run("expire", "--batch", group.batch_id)
        assert (unasked.exit_code, "Pass --yes" in unasked.stderr) == (2, True)

        assert run("expire", "--batch", group.batch_id, "--yes", "--json").document == {
            "batches": 1,
            "items": 10,
            "cursor": None,
        }
        assert run("status", group.batch_id).exit_code == ExitCode.NOT_FOUND
        again = run("expire", "--batch", group.batch_id, "--yes", "--json").document
        assert again == {"batches": 0, "items": 0, "cursor": None}

    @pytest.mark.parametrize(
        "args",
        [
            (),
            ("complete",),
            ("--idle-since", "7d"),
            ("complete", "--batch", "5"),
            ("--idle-since", "7d", "--batch", "5"),
        ],
    )
    def test_names_either_a_state_and_a_time_or_a_batch(self, run, args):
        refused = run("expire", *args)

        assert refused.exit_code == ExitCode.USAGE
        assert "--idle-since TIME" in refused.stderr


def test_limits_of_a_live_batch_change(run, tracker):
    batch = tracker.open().batch_id
    said = run(
        "change", batch, "--deadline", "2h", "--tolerate-failures", "5%", "--stall-after", "20m", "--json"
    )
    assert said.document["tolerated_failures"]["percent"] == 5
    assert (said.document["stall_after"], said.document["deadline"] is None) == (1_200, False)
    assert run("change", batch).exit_code == ExitCode.USAGE
    run("change", batch, "--milestones", "50,90")
    shown = run("status", batch).stdout.splitlines()
    assert {"stall_time\t20 min", "milestones\t50%, 90%"} <= set(shown)
