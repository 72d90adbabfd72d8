"""The office: asks a fleet for its week, is told when everything is in, and puts the report together."""

from __future__ import annotations

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
    """Those who want reports.

    Args:
        tracker: with the credentials of an office.
        ready_queue_url: the queue that the bus feeds with Gather Ready.
        max_retries: how often vehicles are asked again.

    Attributes:
        heard: the events of each scatter, by batch id; more than one would be one too many.
    """

    def __init__(self, tracker: Tracker, ready_queue_url: str, *, max_retries: int) -> None:
        self._tracker = tracker
        self._queue_url = ready_queue_url
        self._max_retries = max_retries
        self.heard: dict[int, list[dict[str, Any]]] = {}

    def ask(self, fleet: Fleet, week: Week, timeout: timedelta) -> int:
        """Ask all registered vehicles of a fleet for a week.

        Args:
            fleet: whose.
            week: which.
            timeout: until a vehicle is asked again, or given up.

        Returns:
            The scatter's batch id.
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
        """Wait until all of these scatters are told to be ready.

        Raises:
            TimeoutError: one was not.
        """
        until = time.monotonic() + patience.total_seconds()
        while not self.heard.keys() >= set(batch_ids):
            if time.monotonic() > until:
                raise TimeoutError(f"not told to be ready: {set(batch_ids) - self.heard.keys()}")
            self.listen(1)

    def listen(self, seconds: int) -> None:
        """Receive what the bus has told, waiting for it a while."""
        sqs = self._tracker.sqs
        answer = sqs.receive_message(
            QueueUrl=self._queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=seconds
        )
        for message in answer.get("Messages", []):
            event = json.loads(message["Body"])
            self.heard.setdefault(event["detail"]["batch_id"], []).append(event)
            sqs.delete_message(QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"])

    def report(self, fleet: Fleet, week: Week, batch_id: int) -> Report:
        """Put the report of a scatter together that is ready.

        Raises:
            Misdirected: a reply belongs to another report.
        """
        detail = self.heard[batch_id][0]["detail"]
        return Report.of(fleet, week, detail, self._tracker.scatters.replies(batch_id))
