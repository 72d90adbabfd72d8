"""The action log of a console."""

from __future__ import annotations

import logging

import pytest

from fanin.console.actions.action import EffectKind
from fanin.console.actions.log import KEPT, LOGGER, Log, LogEntry
from fanin.wire.actions import Action, ActionOutcome, Caller, CallerKind


def entry(number: int = 0, result: EffectKind = EffectKind.DONE) -> LogEntry:
    record = Action("cancelBatch", {}, Caller(CallerKind.LOCAL, "ada"), ActionOutcome(200), 0)
    return LogEntry(record, "Cancel", "batch", str(number), ("batches", number), result, "", {})


def test_it_keeps_the_last_ones_the_newest_first() -> None:
    log = Log()
    for number in range(KEPT + 5):
        log.add(entry(number))
    assert [one.subject for one in log.entries()] == [str(number) for number in range(KEPT + 4, 4, -1)]


def test_a_failure_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        Log().add(entry(result=EffectKind.FAILED))
    assert caplog.records[0].levelno == logging.WARNING
