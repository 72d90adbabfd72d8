"""What alarms and the dashboard look at, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sqs as sqs

from infra.api import Api
from infra.functions import Function
from infra.settings import Settings


@dataclass(frozen=True)
class Watched:
    """The parts of one tracker that can be in trouble, by the names that people see.

    Attributes:
        settings: the deployment's settings.
        api: the service over HTTPS.
        functions: all functions.
        tables: all tables.
        work: queues that consumers empty, at their own pace.
        drained: queues that a function should keep empty.
        dead_ends: queues in which a single message is one too many.
    """

    settings: Settings
    api: Api
    functions: Mapping[str, Function]
    tables: Mapping[str, dynamodb.Table]
    work: Mapping[str, sqs.IQueue]
    drained: Mapping[str, sqs.IQueue]
    dead_ends: Mapping[str, sqs.IQueue]

    @property
    def queues(self) -> dict[str, sqs.IQueue]:
        """All queues."""
        dead = {f"{name} dead letters": queue for name, queue in self.dead_ends.items()}
        return {**self.work, **self.drained, **dead}
