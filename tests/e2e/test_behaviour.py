"""The behaviour suite on the deployed stack."""

import os
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from fanin import Tracker, names
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.local import Stack
from tests.behaviour.test_batches import *  # noqa: F403
from tests.behaviour.test_consuming import *  # noqa: F403
from tests.behaviour.test_early import *  # noqa: F403
from tests.behaviour.test_nesting import *  # noqa: F403
from tests.behaviour.test_patterns import *  # noqa: F403
from tests.behaviour.test_totals import *  # noqa: F403
from tests.behaviour.world import Told
from tests.e2e.deployment import Deployment, Subscriber, eventually
from tests.smoke.trials import SMOKE

T = TypeVar("T")
PATIENCE = 4 if SMOKE in os.environ else 1  # on AWS functions start cold, and queues are polled less often


class DeployedWorld:
    """The deployed stack, where time passes by itself, or rows are made older than they are."""

    def __init__(
        self, deployment: Deployment, subscriber: Subscriber, tracker: Tracker, direct: Tracker
    ) -> None:
        self.tracker = tracker
        self._stack: Stack = deployment.stack
        self._deployment = deployment
        self._subscriber = subscriber
        self._direct = direct

    @property
    def ports(self) -> Ports:
        ledger = self._direct.ledger
        assert isinstance(ledger, LedgerService)
        return ledger.ports

    def queue(self, *, channel: bool = False) -> str:
        tags = {names.CHANNEL_TAG: "behaviour"} if channel else {}
        name = f"{self._deployment.name}-behaviour-{uuid.uuid4().hex[:12]}"
        url: str = self._stack.client("sqs").create_queue(QueueName=name, tags=tags)["QueueUrl"]
        return url

    def tracked_queue(self) -> str:
        return self._stack.work_queue_url

    def until(self, look: Callable[[], T], within: float = 60) -> T:
        return eventually(look, within * PATIENCE)

    def idle(self, batch_id: int, seconds: int) -> None:
        row = self._deployment.row(batch_id)
        now = int(time.time() * 1000)
        self._stack.client("dynamodb").update_item(
            TableName=self._stack.batches_table,
            Key={names.BATCH_ID: {"N": str(batch_id)}},
            UpdateExpression="SET touched_at = :touched_at, due_at = :due_at",
            ExpressionAttributeValues={
                ":touched_at": {"N": str(int(row[names.TOUCHED_AT]["N"]) - seconds * 1000)},
                ":due_at": {"N": str(now - 1000)},
            },
        )
        self._deployment.invoke("reaper")

    def events(self, batch_id: int) -> list[Told]:
        return [Told(event["detail-type"], event["detail"]) for event in self._subscriber.told_of(batch_id)]

    def only_event(self, batch_id: int, within: float = 60) -> Told:
        event: dict[str, Any] = self._subscriber.only_event_of(batch_id, within * PATIENCE)
        return Told(event["detail-type"], event["detail"])


@pytest.fixture
def world(deployment: Deployment, subscriber: Subscriber, tracker: Tracker, direct: Tracker) -> DeployedWorld:
    return DeployedWorld(deployment, subscriber, tracker, direct)
