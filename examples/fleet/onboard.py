"""What runs in a vehicle: it has a queue, registers it, keeps its lease alive, and answers."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from examples.fleet.log import Week, week_log
from examples.fleet.roster import Vehicle
from examples.fleet.wording import CHANNELS, TOPIC, WEEKLY_REPORT
from fanin import (
    ItemFailed,
    ReceivedMessage,
    Register,
    ReplyReceipt,
    ServiceUnavailable,
    Throttled,
    Tracker,
    names,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LEASE: Final = 30
"""Seconds; a vehicle that says nothing for so long is taken for gone."""
WAIT: Final = 2
"""Seconds of a long poll; the heartbeat comes between two."""


class OnBoardUnit:
    """A vehicle's side of the weekly report.

    Args:
        vehicle: the one that it is in.
        tracker: with the credentials of a vehicle.
        via: answer over HTTPS, and know what became of it; or leave the answer in a queue.

    Attributes:
        channel: URL of its queue, once it is connected.
        asked: how often each message came, by item id.
        receipts: what became of answers over HTTPS, in order.
    """

    lease: int = LEASE

    def __init__(
        self, vehicle: Vehicle, tracker: Tracker, *, via: Literal["https", "queue"] = "https"
    ) -> None:
        self.vehicle = vehicle
        self.asked: Counter[str] = Counter()
        self.receipts: list[ReplyReceipt] = []
        self._tracker = tracker
        self._via = via
        self.channel = ""
        self._beat_at = 0.0

    def connect(self) -> None:
        """Make the channel, which carries the tag that lets fanin send to it, and register it."""
        made = self._tracker.sqs.create_queue(
            QueueName=CHANNELS + self.vehicle.plate, tags={names.CHANNEL_TAG: TOPIC}
        )
        self.channel = made["QueueUrl"]
        self._register()

    def run(self, until: Callable[[], bool]) -> None:
        """Answer until told to stop, then leave."""

        def over() -> bool:
            self.between()
            return until()

        self._tracker.consumer(self.channel, self.answer, wait=WAIT).run(over)
        self.leave()

    def leave(self) -> None:
        """End the registration, and remove the channel."""
        self._tracker.directory.deregister(TOPIC, self.vehicle.plate)
        self.scrap()

    def scrap(self) -> None:
        """Remove the channel alone."""
        with suppress(self._tracker.sqs.exceptions.QueueDoesNotExist):
            self._tracker.sqs.delete_queue(QueueUrl=self.channel)

    def between(self) -> None:
        """What is done between two polls: the heartbeat, some times a lease."""
        if time.monotonic() >= self._beat_at:
            with suppress(ServiceUnavailable, Throttled):  # the lease is longer than some heartbeats
                self._register()

    def answer(self, message: ReceivedMessage) -> None:
        """Handle a message of the office."""
        self.asked[message.item or ""] += 1
        self.reply(message, self.report(message))

    def report(self, message: ReceivedMessage) -> dict[str, Any]:
        """What to answer: the week that is asked for, from the vehicle's own log.

        Raises:
            ItemFailed: no vehicle can answer that, so that nobody need ask again.
        """
        if (kind := message.attributes.get(names.ATTRIBUTE_TYPE)) != WEEKLY_REPORT:
            raise ItemFailed(f"{self.vehicle.plate} knows no {kind!r}")
        try:
            week = Week.parse(message.json()["week"])
            log = week_log(self.vehicle, week)
        except (KeyError, ValueError) as error:
            raise ItemFailed(f"{self.vehicle.plate}: {error}") from error
        return {
            "vehicle": self.vehicle.plate,
            "fleet": self.vehicle.fleet,
            "week": str(week),
            "asked": self.asked[message.item or ""],
            "log": log.encode(),
        }

    def reply(self, message: ReceivedMessage, report: dict[str, Any]) -> None:
        """Send an answer."""
        if self._via == "queue":
            self._tracker.scatters.reply_later(message, report)
        else:
            self.receipts.append(self._tracker.scatters.reply(message, report))

    def _register(self) -> None:
        self._tracker.directory.register(
            Register(TOPIC, self.vehicle.plate, self.channel, self.vehicle.attributes, self.lease)
        )
        self._beat_at = time.monotonic() + self.lease / 4
