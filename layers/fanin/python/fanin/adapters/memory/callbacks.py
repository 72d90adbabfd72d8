"""Targets in memory: what they were told is kept for a test to look at."""

from __future__ import annotations

from typing import NamedTuple

from fanin.adapters.memory.accesses import Accesses
from fanin.app.ports.channels import Notice
from fanin.app.ports.events import Event
from fanin.domain.targets import Target
from fanin.errors import ServiceUnavailable, TargetRefused


class Callback(NamedTuple):
    """What a target was told.

    Attributes:
        target: who.
        event: of the end.
        succeeded: whether the batch ended complete and no item failed.
    """

    target: Target
    event: Event
    succeeded: bool


class MemoryCallbacks:
    """A ``Callbacks`` that keeps what targets are told.

    Attributes:
        told: in order, repeats included.
        down: tokens, ids and URLs that take nothing for now.
        refusing: tokens, ids and URLs that take nothing for good.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.told: list[Callback] = []
        self.down: set[str] = set()
        self.refusing: set[str] = set()
        self._accesses = accesses

    def call(self, target: Target, notice: Notice) -> None:
        place = target.task_token or target.callback_id or target.url or ""
        if place in self.refusing:
            raise TargetRefused("the target refuses")
        if place in self.down:
            raise ServiceUnavailable("the target is down")
        told = Callback(target, notice.event, notice.succeeded)
        self._accesses.send("callbacks.call", lambda: self.told.append(told))
