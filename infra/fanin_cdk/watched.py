"""What the alarms and the dashboard watch, as one value."""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sqs as sqs

from fanin import names
from fanin_cdk.api import Api
from fanin_cdk.functions import Function
from fanin_cdk.settings import Settings


@dataclass(frozen=True)
class Watched:
    """The parts of one tracker that can fail, by the names that alarms and dashboard show.

    Attributes:
        settings: settings of the deployment.
        api: the service over HTTPS.
        functions: all functions.
        tables: all tables.
        work: queues that consumers empty, at their own pace.
        drained: queues that a function should keep empty.
        postponing: those of ``drained`` whose function lets messages come again later under overload.
        dead_ends: queues in which a single message raises an alarm.
    """

    settings: Settings
    api: Api
    functions: Mapping[str, Function]
    tables: Mapping[str, dynamodb.Table]
    work: Mapping[str, sqs.IQueue]
    drained: Mapping[str, sqs.IQueue]
    postponing: Mapping[str, sqs.IQueue]
    dead_ends: Mapping[str, sqs.IQueue]

    @property
    def queues(self) -> dict[str, sqs.IQueue]:
        """All queues, by the name that the dashboard shows."""
        dead = {f"{name} dead letters": queue for name, queue in self.dead_ends.items()}
        return {**self.work, **self.drained, **dead}

    def metric(self, name: str, statistic: str = "Sum", period: Duration | None = None) -> cloudwatch.Metric:
        """A metric that the functions write."""
        return metric_of(self.settings.prefix, name, statistic, period)


def metric_of(
    service: str, name: str, statistic: str = "Sum", period: Duration | None = None
) -> cloudwatch.Metric:
    """A metric of fanin that a service writes: the functions of a tracker, or consumers."""
    return cloudwatch.Metric(
        namespace=names.METRICS_NAMESPACE,
        metric_name=name,
        dimensions_map={"service": service},
        statistic=statistic,
        period=period,
    )
