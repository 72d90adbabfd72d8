"""The action log of a console."""

from __future__ import annotations

import json
import logging

import pytest

from fanin.console.actions.action import Result
from fanin.console.actions.log import KEPT, LOGGER, Entry, Log
from fanin.wire.actions import Action, Caller, CallerKind, Outcome


def entry(number: int = 0, result: Result = Result.DONE) -> Entry:
    record = Action(
        "cancelBatch",
        {"batch_id": str(number)},
        Caller(CallerKind.LOCAL, "ada"),
        Outcome(200),
        1_700_000_000_000,
        {"result": "done", "not_done": 188},
    )
    asked = {"error": "secret"}
    return Entry(record, "Cancel", "batch", str(number), ("batches", number), result, "secret", asked)


def test_it_keeps_the_last_ones_the_newest_first() -> None:
    log = Log()
    for number in range(KEPT + 5):
        log.add(entry(number))
    assert [one.subject for one in log.entries()] == [str(number) for number in range(KEPT + 4, 4, -1)]


def test_each_is_a_line_of_json(caplog: pytest.LogCaptureFixture) -> None:
    # When
    with caplog.at_level(logging.INFO, LOGGER):
        Log().add(entry(7))
    # Then it has the fields of the API's log, and nothing that a user wrote
    (record,) = caplog.records
    assert json.loads(record.getMessage()) == {
        "message": "action",
        "action": "cancelBatch",
        "at": "2023-11-14T22:13:20.000Z",
        "object": {"batch_id": "7"},
        "caller": {"kind": "local", "id": "ada"},
        "outcome": {"status": 200},
        "result": {"result": "done", "not_done": 188},
    }


def test_a_failure_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        Log().add(entry(result=Result.FAILED))
    assert caplog.records[0].levelno == logging.WARNING
