"""What runs in a vehicle: it registers its queue, renews its lease, and answers."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from examples.fleet.log import Week, week_log
from examples.fleet.roster import Vehicle
from examples.fleet.wording import CHANNELS, TOPIC, WEEKLY_REPORT
from fanin import ItemFailed, ReceivedMessage, Register, Tracker, names
from fanin.errors import ServiceUnavailable, Throttled
from fanin.types import ReplyReceipt

if TYPE_CHECKING:
    from collections.abc import Callable

LEASE: Final = 30
"""Seconds after which the registration of a silent vehicle expires."""
WAIT: Final = 2
"""Seconds of a long poll; heartbeats are sent between two polls."""


class OnBoardUnit:
    """The vehicle's part of the weekly report.

    Args:
        vehicle: the vehicle.
        tracker: a tracker with the credentials of a vehicle.
        via: ``https`` answers over the API, which returns a receipt; ``queue`` sends answers to the reply
            queue.

    Attributes:
        channel: URL of the vehicle's queue, after ``connect``.
        asked: item id → how often its message arrived.
        receipts: receipts of the answers over HTTPS, in order.
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
        """Create a queue, with the tag that allows fanin to send to it, and register it."""
        made = self._tracker.sqs.create_queue(
            QueueName=CHANNELS + self.vehicle.plate, tags={names.CHANNEL_TAG: TOPIC}
        )
        self.channel = made["QueueUrl"]
        self._register()

    def run(self, until: Callable[[], bool]) -> None:
        """Answer messages until ``until`` returns true, then leave."""

        def over() -> bool:
            self.between()
            return until()

        self._tracker.consumer(self.channel, self.answer, wait=WAIT).run(over)
        self.leave()

    def leave(self) -> None:
        """End the registration, and delete the queue."""
        self._tracker.directory.deregister(TOPIC, self.vehicle.plate)
        self.scrap()

    def scrap(self) -> None:
        """Delete the queue, but leave the registration."""
        with suppress(self._tracker.sqs.exceptions.QueueDoesNotExist):
            self._tracker.sqs.delete_queue(QueueUrl=self.channel)

    def between(self) -> None:
        """Send a heartbeat if one is due; this is called between two polls."""
        if time.monotonic() >= self._beat_at:
            with suppress(
                ServiceUnavailable, Throttled
            ):  # a lost heartbeat does no harm: a lease lasts for four
                self._register()

    def answer(self, message: ReceivedMessage) -> None:
        """Handle a message from the office."""
        self.asked[message.item or ""] += 1
        self.reply(message, self.report(message))

    def report(self, message: ReceivedMessage) -> dict[str, Any]:
        """The answer: the requested week from the vehicle's log.

        Raises:
            ItemFailed: the request is invalid; asking again would not help.
        """
        if (kind := message.attributes.get(names.ATTRIBUTE_TYPE)) != WEEKLY_REPORT:
            raise ItemFailed(
                f"{self.vehicle.plate} does not know the type {kind!r}; it answers to {WEEKLY_REPORT!r}"
            )
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
