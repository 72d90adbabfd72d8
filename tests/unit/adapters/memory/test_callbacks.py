"""Targets in memory."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import Callback, Memory
from fanin.app.ports.callbacks import Notice
from fanin.app.ports.events import Event
from fanin.domain.targets import Target, TargetType
from fanin.errors import ServiceUnavailable, TargetRefused

TARGET = Target(TargetType.STEP_FUNCTIONS, task_token="t")  # noqa: S106
NOTICE = Notice(Event("7.complete", "Batch Completed", {}, 5), succeeded=True)


def test_what_a_target_is_told_is_kept_and_counted() -> None:
    memory = Memory()
    memory.callbacks.call(TARGET, NOTICE)
    assert memory.callbacks.told == [Callback(TARGET, NOTICE.event, succeeded=True)]
    assert memory.accesses.sends["callbacks.call"] == 1


def test_a_target_may_be_down_or_refuse() -> None:
    memory = Memory()
    memory.callbacks.down.add("t")
    with pytest.raises(ServiceUnavailable):
        memory.callbacks.call(TARGET, NOTICE)
    memory.callbacks.refusing.add("t")
    with pytest.raises(TargetRefused):
        memory.callbacks.call(TARGET, NOTICE)
    assert memory.callbacks.told == []
