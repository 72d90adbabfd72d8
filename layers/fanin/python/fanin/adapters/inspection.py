"""Looking at queues: SQS for their figures, Lambda for their consumers, CloudWatch for how these do.

Each request is sent once and waits briefly: a diagnosis that says what it could not see beats one that comes
late. Nothing here raises, and no message is received. What was seen is used for some seconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from fanin.adapters.aws import error_code, once, translated
from fanin.adapters.forks import Threads
from fanin.app.ports.queues import Figures, FunctionTrouble, QueueMapping, QueueReport
from fanin.app.ports.system import Clock
from fanin.domain.latest import Latest
from fanin.errors import FaninError

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sqs import SQSClient

T = TypeVar("T")
_GONE: Final = ("NonExistentQueue", "QueueDoesNotExist")
_REGION: Final = re.compile(r"https://(?:sqs\.([a-z0-9-]+)|([a-z0-9-]+)\.queue)\.amazonaws\.com")
_ENABLED: Final = ("Creating", "Enabling", "Enabled", "Updating")
_VISIBLE: Final = "ApproximateNumberOfMessages"
_COUNTS: Final = (_VISIBLE, f"{_VISIBLE}NotVisible", f"{_VISIBLE}Delayed")
_ATTRIBUTES: Final = ("QueueArn", *_COUNTS, "MessageRetentionPeriod", "RedrivePolicy")
_HASTY: Final = {"attempts": 1, "read_timeout": 1}
_FUNCTIONS: Final = 5
"""Functions of one queue whose metrics are read."""
FRESH_MS: Final = 5_000
"""How long a report is used again.

Lambda answers 15 such requests a second for a whole account and region, and batches that stall together were
mostly sent to one queue. See "Lambda quotas", AWS Lambda Developer Guide.
"""
MOST: Final = 100
"""Queues whose reports a process remembers."""
MINUTES: Final = 15
"""How far back throttles and errors are counted."""


class AwsQueueInspection:
    """A ``QueueInspection``.

    Args:
        clock: tells which metrics are of the last minutes.
        sqs: makes the client, when first used; so do the others.
        functions: of Lambda.
        metrics: of CloudWatch.
        threads: queues that are looked at together.
    """

    def __init__(
        self,
        clock: Clock,
        sqs: Callable[[], SQSClient] | None = None,
        functions: Callable[[], LambdaClient] | None = None,
        metrics: Callable[[], Any] | None = None,
        *,
        threads: int = 4,
    ) -> None:
        self._clock = clock
        self._sqs = once(sqs, "sqs", **_HASTY)
        self._lambda = once(functions, "lambda", **_HASTY)
        self._cloudwatch = once(metrics, "cloudwatch", **_HASTY)
        self._threads = Threads(threads, "inspection")
        self._known = Latest[str, tuple[int, QueueReport]](MOST)

    def look(self, queues: Collection[str]) -> list[QueueReport]:
        now = self._clock.now()
        fresh = {queue: one for queue, (at, one) in self._known.items() if now - at < FRESH_MS}
        stale = [queue for queue in queues if queue not in fresh]
        looked = dict(zip(stale, self._threads.map(self._report, stale), strict=True))
        for queue, report in looked.items():
            self._known[queue] = now, report
        found = fresh | looked
        return [found[queue] for queue in queues]

    def _report(self, queue: str) -> QueueReport:
        seeing = _Seeing()
        attributes = seeing.of("its figures", lambda: self._attributes(queue, _ATTRIBUTES))
        if attributes is None:
            gone = seeing.gone and self._here(queue)
            return QueueReport(queue, exists=not gone, unseen=tuple(seeing.unseen))
        arn = attributes["QueueArn"]
        figures = _figures(attributes)
        dead = None
        if dead_arn := figures.dead_letters:
            dead = seeing.of("its dead-letter queue", lambda: self._depth(queue, dead_arn))
        consumers = seeing.of("its event source mappings", lambda: self._consumers(arn))
        functions = list(dict.fromkeys(one.function for one in consumers or ()))[:_FUNCTIONS]
        troubles: tuple[FunctionTrouble, ...] | None = ()
        if functions:
            troubles = seeing.of("the metrics of its consumers", lambda: self._troubles(functions))
        return QueueReport(queue, True, figures, dead, consumers, troubles, tuple(seeing.unseen))

    def _here(self, queue: str) -> bool:
        """Whether a URL is of this region; SQS knows no queue of another one, although it exists."""
        region = _REGION.match(queue)
        return region is None or self._sqs().meta.region_name in region.groups()

    def _attributes(self, queue: str, wanted: Sequence[str]) -> Mapping[str, str]:
        names: Any = list(wanted)
        answer: Any = self._sqs().get_queue_attributes(QueueUrl=queue, AttributeNames=names)
        attributes: Mapping[str, str] = answer["Attributes"]
        return attributes

    def _depth(self, queue: str, dead_arn: str) -> int:
        """Messages in a dead-letter queue, which is always in the account and region of its source."""
        url = f"{queue.rpartition('/')[0]}/{_name(dead_arn)}"
        counts = self._attributes(url, _COUNTS)
        return sum(int(count) for count in counts.values())

    def _consumers(self, arn: str) -> tuple[QueueMapping, ...]:
        answer = self._lambda().list_event_source_mappings(EventSourceArn=arn)
        return tuple(
            QueueMapping(_name(one["FunctionArn"]), one["State"] in _ENABLED, one["State"], one["UUID"])
            for one in answer["EventSourceMappings"]
        )

    def _troubles(self, functions: Sequence[str]) -> tuple[FunctionTrouble, ...]:
        until = datetime.fromtimestamp(self._clock.now() / 1000, UTC)
        queries: list[Any] = [
            {
                "Id": f"{metric.lower()}_{place}",
                "MetricStat": {
                    "Metric": {
                        "Namespace": "AWS/Lambda",
                        "MetricName": metric,
                        "Dimensions": [{"Name": "FunctionName", "Value": function}],
                    },
                    "Period": 60,
                    "Stat": "Sum",
                },
            }
            for place, function in enumerate(functions)
            for metric in ("Throttles", "Errors")
        ]
        answer = self._cloudwatch().get_metric_data(
            MetricDataQueries=queries, StartTime=until - timedelta(minutes=MINUTES), EndTime=until
        )
        sums = {one["Id"]: round(sum(one["Values"])) for one in answer["MetricDataResults"]}
        return tuple(
            FunctionTrouble(name, sums.get(f"throttles_{n}", 0), sums.get(f"errors_{n}", 0), MINUTES)
            for n, name in enumerate(functions)
        )


@dataclass
class _Seeing:
    """Collects what could not be read.

    Attributes:
        unseen: what, and why.
        gone: whether the queue does not exist.
    """

    unseen: list[str] = field(default_factory=list)
    gone: bool = False

    def of(self, what: str, call: Callable[[], T]) -> T | None:
        """Make a call; None if it fails."""
        try:
            with translated():
                return call()
        except (FaninError, ClientError, BotoCoreError) as error:
            cause = error.__cause__ if isinstance(error, FaninError) else error
            code = error_code(cause) if isinstance(cause, ClientError) else type(cause or error).__name__
            self.gone = self.gone or any(part in code for part in _GONE)
            self.unseen.append(f"{what} ({code})")
            return None


def _figures(attributes: Mapping[str, str]) -> Figures:
    policy = json.loads(attributes.get("RedrivePolicy") or "{}")
    visible, in_flight, delayed = (int(attributes[name]) for name in _COUNTS)
    return Figures(
        visible=visible,
        in_flight=in_flight,
        delayed=delayed,
        retention=int(attributes["MessageRetentionPeriod"]),
        dead_letters=policy.get("deadLetterTargetArn", ""),
        max_receives=int(policy.get("maxReceiveCount", 0)),
    )


def _name(arn: str) -> str:
    """The name at the end of an ARN; for a function without its version or alias."""
    parts = arn.split(":")
    return parts[6] if len(parts) > 6 and parts[5] == "function" else parts[-1]  # noqa: PLR2004
