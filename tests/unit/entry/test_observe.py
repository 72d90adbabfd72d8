"""Logs and metrics of the functions: what is counted, and what every handler gets."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from fanin import names
from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import Batch, Kind, OpenBatch, State
from fanin.domain.marks import Receipt
from fanin.entry import observe


@pytest.fixture
def batch(ledger: LedgerService) -> Batch:
    return ledger.open(OpenBatch())


def test_a_count_of_zero_is_left_out_and_a_gauge_of_zero_is_not(measured):
    observe.count("Some", 0)
    observe.count("Some", 2)
    observe.count("Some")
    observe.gauge("Depth", 0)
    assert measured() == {"Some": [3.0], "Depth": [0.0]}


def test_receipts_are_counted_by_what_they_did(measured):
    observe.count_receipts(
        [Receipt(7, "", State.OPEN, first=3, duplicates=("a", "b")), Receipt(8, "", State.COMPLETE, late=4)]
    )
    assert measured() == {names.METRIC_FIRST: [3.0], names.METRIC_DUPLICATE: [2.0], names.METRIC_LATE: [4.0]}


@pytest.mark.parametrize(
    ("kind", "state", "counted"),
    [
        (Kind.BATCH, State.COMPLETE, set()),
        (Kind.FRAME, State.COMPLETE, {names.METRIC_FRAMES_COMPLETED}),
        (Kind.FRAME, State.TIMED_OUT, {names.METRIC_FRAMES_TIMED_OUT}),
        (Kind.FRAME, State.CANCELLED, set()),
    ],
)
def test_an_end_is_counted_and_for_a_frame_how_it_ended(batch, measured, kind, state, counted):
    observe.count_end(replace(batch, kind=kind, state=state))
    assert measured() == {name: [1.0] for name in (names.METRIC_ENDED, *counted)}


@pytest.fixture
def log(monkeypatch) -> Callable[[], list[dict[str, Any]]]:
    """The lines that were logged, parsed."""
    stream = StringIO()
    monkeypatch.setattr(observe.logger.registered_handler, "stream", stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


class TestObserved:
    def test_a_handler_answers_as_before_and_its_metrics_are_written(self, context, capsys):
        @observe.observed
        def handler(event: dict[str, Any], context: Any) -> Any:
            observe.count("Some", event["n"])
            return {"n": event["n"] + 1}

        assert handler({"n": 4}, context) == {"n": 5}
        (written,) = (json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line)
        assert written["Some"] == [4.0]
        assert observe.metrics.metric_set == {}

    def test_metrics_are_written_even_if_the_handler_raises(self, context, capsys):
        @observe.observed
        def handler(event: dict[str, Any], context: Any) -> Any:
            observe.count("Some")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            handler({}, context)
        assert '"Some":[1.0]' in capsys.readouterr().out.replace(" ", "")

    def test_a_log_line_has_the_id_of_its_invocation_and_nothing_of_the_one_before(self, context, log):
        @observe.observed
        def handler(event: dict[str, Any], context: Any) -> None:
            observe.logger.append_keys(**event)
            observe.logger.info("seen")

        for request, event in (("r1", {"extra": 1}), ("r2", {})):
            handler(event, SimpleNamespace(**{**vars(context), "aws_request_id": request}))
        assert [(line["correlation_id"], line.get("extra")) for line in log()] == [("r1", 1), ("r2", None)]

    def test_a_sample_of_the_invocations_logs_a_line(self, context, log, monkeypatch):
        # Given handlers that log nothing, half of them in the sample
        @observe.observed
        def handler(event: dict[str, Any], context: Any) -> None: ...

        monkeypatch.setenv(names.ENV_LOG_SAMPLE, "50")
        observe._log_sample.cache_clear()
        requests = [f"request-{number}" for number in range(200)]
        for _ in range(2):
            for request in requests:
                handler({}, SimpleNamespace(**{**vars(context), "aws_request_id": request}))
        monkeypatch.undo()
        observe._log_sample.cache_clear()
        # Then about half of them have logged how long they took, and their repeats as well
        lines = [line["correlation_id"] for line in log() if line["milliseconds"] >= 0]
        assert 70 < len(set(lines)) < 130
        assert len(lines) == 2 * len(set(lines))

    def test_without_a_sample_nothing_is_written_for_nothing(self, context, log, capsys):
        @observe.observed
        def handler(event: dict[str, Any], context: Any) -> None:
            observe.count("Some", 0)

        handler({}, context)
        assert (log(), capsys.readouterr().out) == ([], "")
