"""Following batches: who is asked, what a pipe is told, and when it ends."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from fanin.cli.following import Followed, _lines, elapsed, follow_all, progress_of
from fanin.cli.session import Session
from fanin.domain.reports import Progress


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
            monkeypatch.setattr("fanin.cli.following.time", pauses)

        return do

    def test_it_ends_when_the_last_one_has_ended(self, session, tracker, capsys, meanwhile):
        first, second = started(tracker), started(tracker)
        tracker.cancel(first)
        meanwhile(lambda: None, lambda: tracker.cancel(second))
        found = follow_all(session, [first, second])
        assert [one.batch.batch_id for one in found] == [first, second]
        assert all(one.batch.state.terminal for one in found)
        said = capsys.readouterr().err
        assert (said.count(f"{first}: "), said.count(f"{second}: ")) == (1, 2)

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

    def test_a_user_key_is_asked_for_again_each_time(self, session, tracker, meanwhile):
        first = started(tracker, key="night")
        started(tracker, key="day")
        opened = []

        def open_another() -> None:
            opened.append(tracker.open(user_key="night").batch_id)
            tracker.cancel(first)

        meanwhile(open_another, lambda: None, lambda: tracker.cancel(opened[0]))
        found = follow_all(session, [], user_key="night")
        assert [one.batch.batch_id for one in found] == [first, opened[0]]

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
        monkeypatch.setattr("fanin.cli.following.time.monotonic", lambda: at[0])
        return at

    def test_a_change_is_a_line_at_most_every_five_seconds(self, session, tracker, capsys, now):
        # Given a batch of which one item is done each second
        batch = started(tracker, items=20)
        row = tracker.status(batch).batch
        draw = _lines(session, several=False)
        # When
        for second in range(12):
            now[0] = float(second)
            draw([Followed(batch, Progress(row, second, second))])
        # Then
        said = [line.split(" of ")[0] for line in capsys.readouterr().err.splitlines()]
        assert said == ["0", "5", "10"]

    def test_a_failure_or_an_end_is_told_at_once_and_the_same_never_twice(
        self, session, tracker, capsys, now
    ):
        batch = started(tracker)
        draw = _lines(session, several=True)
        draw([Followed(batch)])  # nothing is known yet
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
