"""Watching batches until they have ended."""

import io
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from fanin.cli.exits import ExitCode
from fanin.cli.session import Session
from fanin.cli.times import Pace
from fanin.cli.watching import Followed, _lines, describe, elapsed, follow_all, progress_of
from fanin.domain.reports import Progress
from fanin.errors import BatchNotFound


@pytest.fixture
def session(tracker) -> Session:
    return Session(given=tracker)


def started(tracker, *, items: int = 10, key: str = "") -> int:
    with tracker.batch(user_key=key) as batch:
        batch.add(items)
    return batch.id


class TestAll:
    @pytest.fixture
    def meanwhile(self, monkeypatch):
        """Has something done at each pause of the one who follows, in place of waiting."""

        def do(*steps) -> None:
            left = iter(steps)
            pauses = SimpleNamespace(sleep=lambda _: next(left)(), monotonic=time.monotonic)
            monkeypatch.setattr("fanin.cli.watching.time", pauses)

        return do

    def test_a_batch_that_has_ended_is_not_asked_about_again(self, session, tracker, monkeypatch, meanwhile):
        ended, live = started(tracker), started(tracker)
        tracker.cancel(ended)
        asked, real = [], tracker.status
        monkeypatch.setattr(
            tracker, "status", lambda batch, **options: (asked.append(batch), real(batch, **options))[1]
        )
        follow_all(session, [ended])
        once = asked.count(ended)
        meanwhile(lambda: None, lambda: tracker.cancel(live))
        follow_all(session, [ended, live])
        assert asked.count(ended) == 2 * once
        assert asked.count(live) > once

    def test_one_that_is_opened_just_before_the_last_ends_is_followed(self, session, tracker, monkeypatch):
        # Given a producer that opens another batch, and ends the first, after the key was asked for
        first, opened = started(tracker, key="night"), []
        real = tracker.status

        def status(batch, **options):
            if not opened:
                opened.append(tracker.open(user_key="night").batch_id)
                tracker.cancel(first)
            elif batch == opened[0]:
                tracker.cancel(batch)
            return real(batch, **options)

        monkeypatch.setattr(tracker, "status", status)
        # When the key is followed, then to the end of both
        found = follow_all(session, [], user_key="night", every=0.01)
        assert [one.batch.batch_id for one in found] == [first, opened[0]]

    def test_when_its_time_is_over_it_names_those_that_are_left(self, session, tracker, capsys):
        first, second = started(tracker), started(tracker)
        tracker.cancel(first)
        follow_all(session, [first, second], patience=0)
        assert capsys.readouterr().err.splitlines()[-1] == f"batch {second} is still closed"


def test_progress_of_many_is_by_their_ids(session, tracker):
    batches = [started(tracker, items=n) for n in range(1, 21)]
    found = progress_of(session, batches)
    assert [found[batch].batch.items for batch in batches] == [*range(1, 21)]
    assert progress_of(session, []) == {}


class TestLines:
    @pytest.fixture
    def now(self, monkeypatch):
        at = [0.0]
        monkeypatch.setattr("fanin.cli.watching.time.monotonic", lambda: at[0])
        return at

    def test_a_change_is_a_line_at_most_every_five_seconds(self, session, tracker, capsys, now):
        # Given a batch of which one item is done each second
        batch = started(tracker, items=20)
        row = tracker.status(batch).batch
        draw = _lines(session, several=False)
        for second in range(12):
            now[0] = float(second)
            draw([Followed(batch, Progress(row, second, second))])
        said = [line.split(" of ")[0] for line in capsys.readouterr().err.splitlines()]
        assert said == ["0", "5", "10"]

    def test_a_failure_or_an_end_is_told_at_once_and_the_same_never_twice(
        self, session, tracker, capsys, now
    ):
        batch = started(tracker)
        draw = _lines(session, several=True)
        for seconds, step in enumerate([lambda: None, lambda: tracker.cancel(batch), lambda: None]):
            step()
            now[0] = float(seconds) / 10
            draw([Followed(batch, tracker.status(batch))])
        lines = capsys.readouterr().err.splitlines()
        assert [line.split(", ")[:2] for line in lines] == [
            [f"{batch}: 0 of 10", "closed"],
            [f"{batch}: 0 of 10", "cancelled"],
        ]


def test_the_age_of_a_batch_that_has_ended_stands(tracker):
    batch = started(tracker)
    row = tracker.cancel(batch)
    assert elapsed(Progress(row, 0, 0), row.created_at + 10**9) == elapsed(Progress(row, 0, 0), 0)


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

    def test_it_waits_until_the_batch_has_ended(self, run, tracker, monkeypatch):
        with tracker.batch() as batch:
            group = batch.add(40_000)
        pauses = SimpleNamespace(sleep=lambda _: tracker.ack(group), monotonic=time.monotonic)
        monkeypatch.setattr("fanin.cli.watching.time", pauses)
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
            follow_all(session, [5])
        assert screen.getvalue().endswith("\x1b[?25h")  # the cursor is shown again

    def test_small_batches_are_counted_exactly(self, tracker):
        with tracker.batch() as batch:
            group = batch.add(10_000)
        tracker.ack(group[:5_001])
        (found,) = follow_all(Session(given=tracker, as_json=True), [batch.id], patience=0)
        assert found.done_min == 5_001
