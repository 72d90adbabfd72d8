"""fanin redrive."""

from __future__ import annotations

import pytest

from fanin import Tracker
from fanin.adapters.memory import Memory
from fanin.adapters.system import SystemClock
from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.app.services import Services
from fanin.cli.exits import ExitCode
from fanin.domain.redrives import RedriveState, Redriving

QUEUE = "https://sqs/work"


@pytest.fixture
def memory() -> Memory:
    memory = Memory(clock=SystemClock())
    memory.channels.queues[QUEUE] = []
    return memory


@pytest.fixture
def tracker(memory) -> Tracker:
    return Tracker(Services(memory.ports()))


@pytest.fixture
def batch(tracker, memory) -> int:
    """Three failures; the message of the second was not kept, and the queue of the third is gone."""
    with tracker.batch() as opened:
        group = opened.add(3)
    rows = [
        FailureRow(0, group[0], "row 7", 1, 1, QUEUE, IN_ROW),
        FailureRow(1, group[1], "row 8", 1, 1, QUEUE, ""),
        FailureRow(2, group[2], "gone", 1, 1, "https://sqs/gone", IN_ROW),
    ]
    memory.parts.put_failures(opened.id, rows, expires_at=2**40)
    messages = {0: b'{"body": "a"}', 2: b'{"body": "c"}'}
    memory.parts.put_messages(opened.id, messages, expires_at=2**40)
    tracker.fail(group, "x")
    return opened.id


def test_it_sends_once_and_says_what_it_could_not_send(run, batch, memory, tracker):
    # When it is pressed twice
    first = run("redrive", batch, "--json").document
    again = run("redrive", batch, "--json").document
    # Then the message was sent once, in a new batch
    assert (first["items"], first["not_kept"], first["not_kept_items"]) == (1, 1, [1])
    assert list(first["refused"].values()) == [1]
    assert tracker.status(first["batch_id"]).batch.retry_of == batch
    assert (again["items"], again["already"]) == (0, 1)
    assert len(memory.channels.queues[QUEUE]) == 1


def test_people_read_the_same(run, batch):
    shown = run("redrive", batch, "--dry-run").stdout
    assert "to_send\t1" in shown
    assert "items 1" in shown
    assert "https://sqs/gone" in shown


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (("--error", "row <n>"), 1),
        (("--error", "go", "--queue", QUEUE), 1),
        (("--range", "1..3"), 0),
        (("--range", "0..1", "--range", "2..3", "--queue", QUEUE), 2),
    ],
)
def test_a_selection(run, batch, options, sent):
    assert run("redrive", batch, "--json", *options).document["items"] == sent


def test_a_range_that_is_none_is_explained(run, batch):
    result = run("redrive", batch, "--range", "3..1")
    assert result.exit_code == ExitCode.USAGE
    assert "one past the last" in result.stderr


def test_a_queue_that_may_not_be_used_is_refused(run, batch):
    result = run("redrive", batch, "--queue", "https://sqs/gone")
    assert result.exit_code == ExitCode.REFUSED
    assert "fanin:channel" in result.stderr


def test_ctrl_c_says_that_the_service_goes_on(run, batch, tracker, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tracker, "redrive", interrupted)
    result = run("redrive", batch)
    assert result.exit_code == ExitCode.INTERRUPTED
    assert "goes on" in result.stderr


def test_what_could_not_be_sent_is_an_exit_code(run, batch):
    assert run("redrive", batch, "--dry-run").exit_code == 0
    assert run("redrive", batch, "--range", "0..1").exit_code == 0
    assert run("redrive", batch, "--range", "1..2").exit_code == ExitCode.WRONG  # its message was not kept
    assert run("redrive", batch, "--range", "2..3").exit_code == ExitCode.WRONG  # its queue is gone


def test_that_nothing_matches_is_told_apart_from_that_nothing_failed(run, batch, tracker):
    with tracker.batch() as clean:
        pass
    assert "no failure matches" in run("redrive", batch, "--error", "odd").stderr
    assert "nothing has failed" in run("redrive", clean.id).stderr


def test_a_live_batch_is_not_redriven_and_the_message_says_how_to_go_on(run, tracker):
    group = tracker.add(tracker.open().batch_id, 2)
    tracker.fail(group[0], "x")
    result = run("redrive", group.batch_id)
    assert result.exit_code == ExitCode.USAGE
    assert f"fanin why {group.batch_id}" in result.stderr


def test_progress_is_said_when_it_has_changed(run, batch, tracker, monkeypatch):
    def redrive(*_: object, progress, **__: object) -> Redriving:
        for sent in (0, 250, 250, 500):
            progress(Redriving("r", batch, None, RedriveState.RUNNING, items=sent, already=3))
        return Redriving("r", batch, 8, RedriveState.FINISHED, items=500)

    monkeypatch.setattr(tracker, "redrive", redrive)
    assert run("redrive", batch).stderr.splitlines() == [
        f"{sent} sent, 3 redriven before" for sent in (0, 250, 500)
    ]
    assert run("redrive", batch, "--json").stderr == ""


def test_a_dry_run_that_took_too_long_says_that_there_is_more(run, batch, tracker, monkeypatch):
    counted = Redriving("", batch, None, RedriveState.RUNNING, items=10)
    monkeypatch.setattr(tracker, "redrive", lambda *_, **__: counted)
    assert "there are more failures" in run("redrive", batch, "--dry-run").stderr


def test_what_was_redriven_is_shown_as_such(run, batch):
    run("redrive", batch, "--range", "0..1")
    first, second, _ = run("failures", batch).stdout.strip().splitlines()[1:]
    assert ("redriven" in first, "redriven" in second) == (True, False)
