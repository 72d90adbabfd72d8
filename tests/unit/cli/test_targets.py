"""``fanin targets``, and the option ``--on-end``."""

from __future__ import annotations

import pytest

from fanin import Tracker
from fanin.cli.exits import ExitCode
from fanin.domain.batch import State
from fanin.domain.targets import TargetState
from fanin.testing import InMemoryService

TOKEN = "t" * 40 + "abcd"


@pytest.fixture
def service() -> InMemoryService:
    return InMemoryService()


@pytest.fixture
def tracker(service: InMemoryService) -> Tracker:
    """The command line's, with functions that call targets back."""
    return service.tracker


def test_a_batch_is_opened_with_targets_and_shows_them_masked(run, tracker) -> None:
    opened = run(
        "open", "--on-end", f"step_functions={TOKEN}", "--on-end", "failed:webhook=https://a.example/s?k=v"
    )
    assert opened.exit_code == 0, opened.stderr

    shown = run("targets", opened.stdout.strip())

    assert shown.exit_code == 0
    assert "…abcd" in shown.stdout
    assert "https://a.example/…" in shown.stdout
    assert TOKEN not in shown.stdout
    assert "s?k=v" not in shown.stdout


def test_a_parked_target_is_an_exit_code_and_is_told_again_on_request(run, tracker, service) -> None:
    # Given a batch whose target refuses
    refusing = service._runtime.memory.callbacks.refusing
    refusing.add(TOKEN)
    batch = tracker.open(on_end=[{"type": "step_functions", "task_token": TOKEN}])
    tracker.close(batch.batch_id)
    assert run("targets", batch.batch_id).exit_code == ExitCode.WRONG
    # When it does no more
    refusing.clear()
    assert run("targets", batch.batch_id, "--redeliver").exit_code == 0
    # Then
    assert [target.state for target in tracker.targets(batch.batch_id)] == [TargetState.DELIVERED]


def test_a_live_batch_is_not_told_of(run, tracker) -> None:
    result = run("targets", tracker.open().batch_id, "--redeliver")
    assert result.exit_code != 0
    assert "told when it ends" in result.stderr


@pytest.mark.parametrize("bad", ["sqs", "pager=x", "later:sqs=https://q", "sqs="])
def test_what_is_not_a_target_is_refused(run, tracker, bad) -> None:
    result = run("open", "--on-end", bad)
    assert result.exit_code == ExitCode.USAGE
    assert "TYPE=WHERE" in result.stderr
    assert tracker.list(State.OPEN).batches == ()


def test_a_fan_out_calls_back(run, tracker, service, tmp_path) -> None:
    queue, then = service.queue("work"), service.queue("then", channel=True)
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"a":1}\n')
    result = run("fanout", rows, "--queue", queue, "--on-end", f"complete:sqs={then}", "--json")
    assert result.exit_code == 0, result.stderr
    (target,) = tracker.targets(result.document["batch_id"])
    assert (target.to, target.when.value) == ("then", "complete")


def test_a_batch_without_targets_says_so(run, tracker) -> None:
    batch = tracker.open()

    shown = run("targets", str(batch.batch_id))

    assert (shown.exit_code, "opened without --on-end" in shown.stderr) == (0, True)
