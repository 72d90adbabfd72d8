"""How vehicles misbehave: slow, too late, repeating themselves, dead in three ways."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from examples.fleet.onboard import OnBoardUnit
from fanin import ReceivedMessage

DAY: Final = 86_400


class Slow(OnBoardUnit):
    """Has its answer only after the deadline, when it is asked again."""

    def answer(self, message: ReceivedMessage) -> None:
        self.asked[message.item or ""] += 1
        if self.asked[message.item or ""] > 1:
            self.reply(message, self.report(message))


class Stuttering(OnBoardUnit):
    """Says everything twice, as one does whose first answer seems to be lost."""

    def reply(self, message: ReceivedMessage, report: dict[str, Any]) -> None:
        super().reply(message, report)
        super().reply(message, report)


class Wavering(OnBoardUnit):
    """Thinks better of it: answers again, with other figures."""

    def reply(self, message: ReceivedMessage, report: dict[str, Any]) -> None:
        super().reply(message, report)
        log = report["log"]
        super().reply(message, report | {"log": log | {"odometer_m": log["odometer_m"] + 1_000_000}})


class InTunnel(OnBoardUnit):
    """Hears everything, and can answer only once it is out."""

    def __init__(self, *args: Any, out: threading.Event, **options: Any) -> None:
        super().__init__(*args, **options)
        self._out = out
        self._held: dict[str, ReceivedMessage] = {}

    def answer(self, message: ReceivedMessage) -> None:
        self.asked[message.item or ""] += 1
        self._held[message.item or ""] = message

    def between(self) -> None:
        super().between()
        if self._out.is_set():
            for message in self._held.values():
                self.reply(message, self.report(message))
            self._held.clear()


class Mute(OnBoardUnit):
    """Died, and its lease is a long one: it is asked in vain."""

    lease = DAY

    def run(self, until: Callable[[], bool]) -> None:
        """Do nothing, for ever."""


class Gone(Mute):
    """Died a while ago: its lease runs out, and it is not asked any more."""

    lease = 10


class Scrapped(Mute):
    """Its queue is deleted, and nobody has told the directory: it cannot be asked."""
