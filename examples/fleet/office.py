"""The office: asks a fleet for a week, waits for the event Gather Ready, and builds the report."""

import json
import time
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from examples.fleet.log import Week
from examples.fleet.report import Report
from examples.fleet.roster import Fleet
from examples.fleet.wording import APP, TOPIC, WEEKLY_REPORT
from fanin import Tracker


class Office:
    """Requests and builds reports.

    Args:
        tracker: a tracker with the credentials of the office.
        ready_queue_url: queue that gets the events Gather Ready from the bus.
        max_retries: how often vehicles are asked again.

    Attributes:
        heard: batch id of a scatter → its events; there should be one.
    """

    def __init__(self, tracker: Tracker, ready_queue_url: str, *, max_retries: int) -> None:
        self._tracker = tracker
        self._queue_url = ready_queue_url
        self._max_retries = max_retries
        self.heard: dict[int, list[dict[str, Any]]] = {}

    def ask(self, fleet: Fleet, week: Week, timeout: timedelta) -> int:
        """Ask all registered vehicles of a fleet for a week.

        Args:
            fleet: the fleet to ask.
            week: the week to ask for.
            timeout: time after which a vehicle is asked again, or counts as missing.

        Returns:
            The batch id of the scatter.
        """
        started = self._tracker.scatters.start(
            TOPIC,
            {"fleet": fleet.key, "week": str(week)},
            where={"fleet": fleet.key},
            type=WEEKLY_REPORT,
            timeout=timeout,
            max_retries=self._max_retries,
            user_key=f"{fleet.key} {week}",
            metadata={"app": APP},
        )
        return started.batch.batch_id

    def wait(self, batch_ids: Collection[int], patience: timedelta) -> None:
        """Wait for the events of all these scatters.

        Raises:
            TimeoutError: an event did not arrive in time; the message names its scatter.
        """
        until = time.monotonic() + patience.total_seconds()
        while not self.heard.keys() >= set(batch_ids):
            if time.monotonic() > until:
                raise TimeoutError(
                    f"no event Gather Ready within {patience} for {set(batch_ids) - self.heard.keys()}"
                )
            self.listen(1)

    def listen(self, seconds: int) -> None:
        """Receive events, and wait for them for at most ``seconds``."""
        sqs = self._tracker.sqs
        answer = sqs.receive_message(
            QueueUrl=self._queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=seconds
        )
        for message in answer.get("Messages", []):
            event = json.loads(message["Body"])
            self.heard.setdefault(event["detail"]["batch_id"], []).append(event)
            sqs.delete_message(QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"])

    def report(self, fleet: Fleet, week: Week, batch_id: int) -> Report:
        """Build the report of a scatter that is ready.

        Raises:
            Misdirected: a reply belongs to another report.
        """
        detail = self.heard[batch_id][0]["detail"]
        return Report.of(fleet, week, detail, self._tracker.scatters.replies(batch_id))
