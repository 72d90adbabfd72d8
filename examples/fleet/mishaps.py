"""Vehicles that misbehave: slow, too late, repeating themselves, or dead in one of three ways."""

import threading
from collections.abc import Callable
from typing import Any, Final

from examples.fleet.onboard import OnBoardUnit
from fanin import ReceivedMessage

DAY: Final = 86_400


class Slow(OnBoardUnit):
    """Does not answer before the deadline, but when it is asked again."""

    def answer(self, message: ReceivedMessage) -> None:
        self.asked[message.item or ""] += 1
        if self.asked[message.item or ""] > 1:
            self.reply(message, self.report(message))


class Stuttering(OnBoardUnit):
    """Answers twice, as if its first answer had been lost."""

    def reply(self, message: ReceivedMessage, report: dict[str, Any]) -> None:
        super().reply(message, report)
        super().reply(message, report)


class Wavering(OnBoardUnit):
    """Answers a second time, with other figures."""

    def reply(self, message: ReceivedMessage, report: dict[str, Any]) -> None:
        super().reply(message, report)
        log = report["log"]
        super().reply(message, report | {"log": log | {"odometer_m": log["odometer_m"] + 1_000_000}})


class InTunnel(OnBoardUnit):
    """Receives everything, but cannot answer before ``out`` is set."""

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
    """Died with a long lease: it is asked, but never answers."""

    lease = DAY

    def run(self, until: Callable[[], bool]) -> None:
        """Never poll, and return at once."""


class Gone(Mute):
    """Died some time ago: its lease expires, and it is not asked."""

    lease = 10


class Scrapped(Mute):
    """Its queue is deleted, but its registration is still there: it cannot be asked."""
