"""Failed items: sent again, or given up."""

import json

import pytest

from fanin import Tolerance, Tracker
from fanin.adapters.memory import Memory
from fanin.adapters.system import SystemClock
from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.app.services import Services
from fanin.cli.exits import ExitCode
from fanin.domain.marks import Failure
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
    first = run("redrive", batch, "--json").document
    pressed = run("redrive", batch, "--json")
    again = pressed.document
    # Then the message was sent once, in a new batch
    assert (first["items"], first["not_kept"], first["not_kept_items"]) == (1, 1, [1])
    assert list(first["refused"].values()) == [1]
    assert tracker.status(first["batch_id"]).batch.retry_of == batch
    assert (again["items"], again["already"]) == (0, 1)
    assert len(memory.channels.queues[QUEUE]) == 1
    # And what helps where nothing can be sent is said
    assert f"`fanin list --parent {batch}`. Else send it as a new batch" in pressed.stderr
    assert f"`fanin expire --batch {batch}` then removes this one" in pressed.stderr


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
