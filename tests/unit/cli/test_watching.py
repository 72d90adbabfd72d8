"""fanin watch: what it shows, how long it waits, and its exit code."""

from __future__ import annotations

import io
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from fanin.cli.exits import ExitCode
from fanin.cli.following import describe, follow
from fanin.cli.pace import Pace
from fanin.cli.session import Session
from fanin.domain.reports import Progress
from fanin.errors import BatchNotFound


class TestWords:
    @pytest.mark.parametrize(
        ("left", "words"), [(7, "0:07 left"), (599, "9:59 left"), (7_325, "2:02:05 left")]
    )
    def test_time_left(self, tracker, left, words):
        with tracker.batch() as batch:
            batch.add(10 + left)
        pace = Pace()
        pace.record(0, 0)
        pace.record(10, 10)
        said = describe(Progress(batch.row, 10, 10), pace)
        assert said == f"10 of {10 + left:,}, closed, 1/s, {words}"

    def test_an_open_batch_may_grow_so_no_time_is_promised(self, tracker):
        batch = tracker.attach(tracker.open().batch_id)
        batch.add(20)
        pace = Pace()
        pace.record(0, 0)
        pace.record(10, 10)
        assert describe(Progress(batch.status().batch, 10, 10), pace) == "10 of 20, open, 1/s"

    def test_what_failed_is_told_from_what_was_done(self, tracker):
        with tracker.batch() as batch:
            group = batch.add(200)
        tracker.ack(group[:198])
        tracker.fail(group[198:], "no price")
        progress = batch.status()
        assert describe(progress, Pace()) == "200 of 200, 2 of these failed, complete"

        unsure = replace(progress, batch=replace(progress.batch, failed_more=True))
        assert describe(unsure, Pace()) == "200 of 200, at least 2 of these failed, complete"


class TestWatch:
    @pytest.mark.parametrize("command", ["watch", "status"])
    def test_failures_make_the_exit_code_if_asked_for(self, run, tracker, command):
        with tracker.batch() as batch:
            group = batch.add(200)
        tracker.ack(group[:198])
        tracker.fail(group[198:], "no price")

        assert run(command, batch.id).exit_code == 0
        assert run(command, batch.id, "--fail-on-failures").exit_code == ExitCode.WRONG

    def test_an_end_of_which_nobody_knows_what_is_held_counts_as_one_with_failures(self, run, tracker):
        # Given a batch that ended with a held item, behind more that were held before than a status looks at
        with tracker.batch(on_failure="hold") as batch:
            group = batch.add(20_000)
        for items in (group[:50], group[19_000:19_001]):
            tracker.fail(items, "no price")
        tracker.ack(group[:50])
        tracker.cancel(batch.id)
        row = tracker.status(batch.id).batch
        assert (row.held, row.may_hold_more) == (0, True)

        assert run("status", batch.id).exit_code == 0
        assert run("status", batch.id, "--fail-on-failures").exit_code == ExitCode.WRONG

    def test_a_complete_batch_exits_with_0(self, run, tracker):
        with tracker.batch(user_key="k") as batch:
            group = batch.add(4)
        tracker.ack(group)
        result = run("watch", batch.id, "--json")
        assert (result.exit_code, result.document["state"], result.stderr) == (0, "complete", "")
        assert "4 of 4, complete" in run("watch", batch.id).stderr

    def test_any_other_end_exits_with_1(self, run, tracker):
        batch = tracker.open().batch_id
        tracker.cancel(batch)
        assert run("watch", batch).exit_code == ExitCode.WRONG

    def test_it_waits_until_the_batch_has_ended(self, run, tracker, monkeypatch):
        with tracker.batch() as batch:
            group = batch.add(40_000)
        pauses = SimpleNamespace(sleep=lambda _: tracker.ack(group), monotonic=time.monotonic)
        monkeypatch.setattr("fanin.cli.following.time", pauses)
        assert run("watch", batch.id).exit_code == 0

    def test_it_gives_up_after_its_time(self, run, tracker):
        batch = tracker.open().batch_id
        result = run("watch", batch, "--timeout", "0s")
        assert result.exit_code == ExitCode.WRONG
        assert "is still open" in result.stderr

    def test_a_terminal_is_left_in_order_after_an_error(self, tracker):
        screen = io.StringIO()
        session = Session(given=tracker)
        session.stderr = Console(file=screen, force_terminal=True, width=100)
        with pytest.raises(BatchNotFound):
            follow(session, 5)
        assert screen.getvalue().endswith("\x1b[?25h")  # the cursor is shown again

    def test_small_batches_are_counted_exactly(self, tracker):
        with tracker.batch() as batch:
            group = batch.add(10_000)
        tracker.ack(group[:5_001])
        assert follow(Session(given=tracker, as_json=True), batch.id, patience=0).done_min == 5_001
