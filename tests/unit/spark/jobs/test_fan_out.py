"""Arguments of the fan-out job, and the fan-out that they ask for."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import pytest

from fanin.domain.batch import Batch, CloseWhen, OnDeadline, OpenBatch, State
from fanin.domain.targets import Target, TargetType, When
from fanin.spark.fanout.failed_rows import FailedRows
from fanin.spark.fanout.opening import request_of
from fanin.spark.fanout.summary import FannedOut
from fanin.spark.inputs.formats import Dataset
from fanin.spark.jobs import fan_out
from fanin.spark.jobs.fan_out import JOB
from fanin.spark.jobs.running import USAGE
from fanin.spark.runtime.rejects import RejectLimit
from tests.unit.spark.conftest import MemoryStack

NEEDED = ["--input", "rows.csv", "--queue", "https://queue", "--staging", "/staging"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the job asks for; each fan-out ends closed."""
    calls: list[dict[str, Any]] = []

    @wraps(fan_out.fan_out)
    def fanned(rows: object, *, opened: Callable[[Batch], None], progress: bool, **more: Any) -> FannedOut:
        calls.append({"rows": rows, **more})
        request_of({name: more[name] for name in _OF_THE_BATCH})
        opened(MemoryStack().ledger().open(OpenBatch()))
        assert progress
        return DONE

    monkeypatch.setattr(fan_out, "fan_out", fanned)
    return calls


DONE = FannedOut(7, rows=3, sent=3, requests=1, rejects={}, state=State.CLOSED)
_OF_THE_BATCH = (
    *("user_key", "deadline", "on_deadline", "lifetime", "idle_ttl", "parent_item", "retry_of"),
    *("metadata", "on_end", "totals", "results", "max_items"),
)


def run(*more: str) -> dict[str, Any]:
    return JOB.run(None, JOB.parser().parse_args([*NEEDED, *more]))


def test_without_options_it_is_a_plain_batch(asked):
    told = run()
    assert (told["ok"], told["batch_id"], told["state"]) == (True, 7, "closed")
    assert told["accounted"] == {"in": 3, "sent": 3, "rejected": 0}
    (call,) = asked
    assert call["rows"] == Dataset("rows.csv")
    assert request_of({name: call[name] for name in _OF_THE_BATCH}) == OpenBatch()


def test_the_batch_is_told_as_soon_as_it_is_open(asked, capsys):
    options = JOB.parser().parse_args(NEEDED)
    JOB.run(None, options)
    batch_id = options.so_far["batch_id"]
    told = f"fan-out: batch {batch_id} is open; `fanin status {batch_id}` shows how far it is\n"
    assert capsys.readouterr().err == told


def test_every_option_of_the_batch_is_in_the_request(asked):
    run(
        *("--user-key", "mine", "--parent-item", "7:g:3", "--retry-of", "9"),
        *("--lifetime", "7200", "--idle-ttl", "600"),
        *("--deadline", "2026-11-21T18:00:00Z", "--on-deadline", "complete"),
        *("--metadata", "a=b", "--metadata", "c=d=e"),
        *("--totals", "rows,cents", "--results", "--max-items", "10000"),
    )
    (call,) = asked
    assert request_of({name: call[name] for name in _OF_THE_BATCH}) == OpenBatch(
        user_key="mine",
        parent_item="7:g:3",
        retry_of=9,
        lifetime=7_200,
        idle_ttl=600,
        deadline=1_795_284_000_000,
        on_deadline=OnDeadline.COMPLETE,
        metadata={"a": "b", "c": "d=e"},
        totals=("rows", "cents"),
        results=True,
        max_items=10_000,
    )


def test_every_option_of_the_dataset_is_in_the_plan(asked):
    run(
        *("--format", "csv", "--schema", "id long", "--multiline", "--body", "text"),
        *("--delimiter", r"\t", "--encoding", "latin-1", "--quote", "'", "--escape", "^"),
        *("--max-rejects", "5%"),
        *("--key", "nightly", "--rejects", "/rejects", "--workers", "3"),
        *("--keys", "url", "--fair", "--close", "drained"),
    )
    (call,) = asked
    assert call["rows"] == Dataset(
        *("rows.csv", "csv"),
        schema="id long",
        delimiter="\t",
        encoding="latin-1",
        quote="'",
        escape="^",
        multiline=True,
    )
    assert call["max_rejects"] == RejectLimit(share=0.05)
    wanted = {"body": "text", "keys": "url", "key": "nightly", "rejects": "/rejects", "workers": 3}
    wanted |= {"fair": True, "close": CloseWhen.DRAINED}
    assert {name: call[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("changed", "ok"),
    [
        ({"state": State.COMPLETE}, True),
        ({"state": State.COMPLETE, "detail": "the deadline was over, and none of its rows was sent"}, False),
        ({"state": State.CANCELLED}, False),
        ({"state": State.TIMED_OUT}, False),
        ({"state": State.ORPHANED}, False),
    ],
)
def test_a_batch_that_ended_otherwise_is_not_ok(changed, ok):
    assert replace(DONE, **changed).summary()["ok"] is ok


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--deadline", "tomorrow", "argument --deadline: "),
        ("--queue", "", "argument --queue: '' is not the URL of a queue"),
        ("--queue", "work", "argument --queue: 'work' is not the URL of a queue"),
        ("--metadata", "nonsense", "'nonsense' is not KEY=VALUE"),
        ("--on-deadline", "explode", "invalid"),
        ("--format", "xml", "invalid"),
        ("--max-rejects", "many", "neither a number of rows nor a share"),
        ("--max-rejects", "101%", "neither a number of rows nor a share"),
    ],
)
def test_arguments_that_do_not_make_sense_say_why(capsys, option, value, message):
    with pytest.raises(SystemExit):
        JOB.parser().parse_args([*NEEDED, option, value])
    assert message in capsys.readouterr().err


def test_targets_are_called_back_at_the_end(asked):
    run(
        *("--on-end", '{"type": "sqs", "when": "complete", "queue_url": "https://next"}'),
        *("--on-end", '{"type": "step_functions", "task_token": "t"}'),
    )
    assert tuple(asked[0]["on_end"]) == (
        Target(TargetType.SQS, When.COMPLETE, queue_url="https://next"),
        Target(TargetType.STEP_FUNCTIONS, task_token="t"),
    )


@pytest.mark.parametrize("bad", ["sqs", "[]", "5", '{"type": "pager"}', '{"queue_url": "https://q"}'])
def test_what_is_not_a_target_is_refused(bad, capsys):
    with pytest.raises(SystemExit):
        run("--on-end", bad)
    assert "not a target" in capsys.readouterr().err


def test_failed_rows_of_an_earlier_fan_out_take_the_place_of_a_dataset(asked):
    for more, pending in (([], False), (["--and-pending"], True)):
        words = ["--failed-from", "/first", "--retry-of", "9", *NEEDED[2:], *more]
        JOB.run(None, JOB.parser().parse_args(words))
        assert asked.pop()["rows"] == FailedRows(9, "/first", pending)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--failed-from", "/first"], "--failed-from needs --retry-of"),
        (["--failed-from", "/first", "--retry-of", "9", "--body", "text"], "leave out body"),
        (["--failed-from", "/first", "--retry-of", "9", "--multiline"], "leave out delimiter, encoding"),
        (["--input", "rows.csv", "--and-pending"], "goes with --failed-from"),
    ],
)
def test_arguments_that_contradict_each_other_end_the_job_before_it_begins(capsys, words, why):
    with pytest.raises(SystemExit) as ended:
        JOB.main([*words, *NEEDED[2:]])
    assert ended.value.code == USAGE
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--input", "rows.csv", "--failed-from", "/first"]])
def test_either_a_dataset_or_failed_rows_are_sent(words):
    with pytest.raises(SystemExit):
        JOB.parser().parse_args([*words, *NEEDED[2:]])
