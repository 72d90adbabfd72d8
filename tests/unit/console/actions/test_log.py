"""The action log of a console."""

from __future__ import annotations

import json
import logging

import pytest

from fanin.console.actions.action import Result
from fanin.console.actions.log import KEPT, LOGGER, Entry, Log


def entry(number: int = 0, **other: object) -> Entry:
    given: dict[str, object] = {
        "at": 1_700_000_000_000 + number,
        "action": "cancel",
        "kind": "batch",
        "subject": str(number),
        "segments": ("batches", number),
        "result": Result.DONE,
        "says": "done",
    }
    return Entry(**{**given, **other})  # type: ignore[arg-type]


def test_it_keeps_the_last_ones_the_newest_first() -> None:
    log = Log()
    for number in range(KEPT + 5):
        log.add(entry(number))
    assert [one.subject for one in log.entries()] == [str(number) for number in range(KEPT + 4, 4, -1)]


def test_each_is_a_line_of_json(caplog: pytest.LogCaptureFixture) -> None:
    # When
    with caplog.at_level(logging.INFO, LOGGER):
        Log().add(entry(numbers={"not_done": 188}, caller="ada", says="it's\n</script>"))
    # Then
    (record,) = caplog.records
    line = record.getMessage()
    assert "\n" not in line
    assert json.loads(line) == {
        "at": "2023-11-14T22:13:20.000Z",
        "action": "cancel",
        "batch": "0",
        "result": "done",
        "says": "it's\n</script>",
        "numbers": {"not_done": 188},
        "caller": "ada",
    }


def test_a_failure_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        Log().add(entry(result=Result.FAILED, error="throttled"))
    assert caplog.records[0].levelno == logging.WARNING
