"""What the stacks of a deployment have used since they were created, as CloudWatch counts it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fanin.domain.costs import Usage
from tests.smoke.account import Account

PERIOD: Final = 3600
"""Seconds of one sum; GetMetricData aligns it to full hours."""
MOST_QUERIES: Final = 500  # in one call of GetMetricData
MS_A_SECOND: Final = 1000
MB_A_GB: Final = 1024


@dataclass(frozen=True)
class Metric:
    """One metric of CloudWatch, and what a unit of it counts as.

    Attributes:
        unit: what is counted, a field of ``Usage``.
        namespace: of the metric.
        name: of the metric.
        dimensions: of the metric.
        factor: units for one of the metric's.
    """

    unit: str
    namespace: str
    name: str
    dimensions: Mapping[str, str]
    factor: float = 1


def usage(account: Account, stacks: list[str], since: datetime) -> Usage:
    """What the stacks have used.

    SQS has no metric of requests, so its messages are counted as if each had a request of its own, sent,
    received and deleted, and each empty receive.

    Args:
        account: where the stacks are.
        stacks: their names.
        since: when they were created.
    """
    metrics = [metric for stack in stacks for metric in _metrics(account, stack)]
    cloudwatch = account.client("cloudwatch")
    used: Counter[str] = Counter()
    queries = [_query(number, metric) for number, metric in enumerate(metrics)]
    for start in range(0, len(queries), MOST_QUERIES):
        pages = cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=queries[start : start + MOST_QUERIES],
            StartTime=since.replace(minute=0, second=0, microsecond=0),
            EndTime=datetime.now(UTC) + timedelta(hours=1),
        )
        for result in (result for page in pages for result in page["MetricDataResults"]):
            metric = metrics[int(result["Id"].removeprefix("m"))]
            used[metric.unit] += sum(result["Values"]) * metric.factor
    return Usage(**used)


def _query(number: int, metric: Metric) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in metric.dimensions.items()]
    named = {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": dimensions}
    return {"Id": f"m{number}", "MetricStat": {"Metric": named, "Period": PERIOD, "Stat": "Sum"}}


def _metrics(account: Account, stack: str) -> Iterator[Metric]:
    pages = account.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
    for resource in (resource for page in pages for resource in page["StackResourceSummaries"]):
        of_kind = _OF_KIND.get(resource["ResourceType"])
        if of_kind:
            yield from of_kind(account, resource["PhysicalResourceId"])


def _table(account: Account, name: str) -> Iterator[Metric]:
    table = account.client("dynamodb").describe_table(TableName=name)["Table"]
    indexes = (index["IndexName"] for index in table.get("GlobalSecondaryIndexes", ()))
    for index in ({}, *({"GlobalSecondaryIndexName": index} for index in indexes)):
        where = {"TableName": name, **index}
        yield Metric("writes", "AWS/DynamoDB", "ConsumedWriteCapacityUnits", where)
        yield Metric("reads", "AWS/DynamoDB", "ConsumedReadCapacityUnits", where)


def _function(account: Account, name: str) -> Iterator[Metric]:
    memory = account.client("lambda").get_function_configuration(FunctionName=name)["MemorySize"]
    where = {"FunctionName": name}
    yield Metric("invocations", "AWS/Lambda", "Invocations", where)
    yield Metric("gb_seconds", "AWS/Lambda", "Duration", where, memory / MB_A_GB / MS_A_SECOND)


def _queue(_: Account, url: str) -> Iterator[Metric]:
    where = {"QueueName": url.rpartition("/")[2]}
    for name in (
        "NumberOfMessagesSent",
        "NumberOfMessagesReceived",
        "NumberOfMessagesDeleted",
        "NumberOfEmptyReceives",
    ):
        yield Metric("queue_requests", "AWS/SQS", name, where)


def _api(_: Account, id_: str) -> Iterator[Metric]:
    yield Metric("api_requests", "AWS/ApiGateway", "Count", {"ApiId": id_})


def _logs(_: Account, name: str) -> Iterator[Metric]:
    yield Metric("log_bytes", "AWS/Logs", "IncomingBytes", {"LogGroupName": name})


_OF_KIND: Final = {
    "AWS::DynamoDB::Table": _table,
    "AWS::DynamoDB::GlobalTable": _table,
    "AWS::Lambda::Function": _function,
    "AWS::SQS::Queue": _queue,
    "AWS::ApiGatewayV2::Api": _api,
    "AWS::Logs::LogGroup": _logs,
}
"""Kind of a resource → the metrics of one."""
