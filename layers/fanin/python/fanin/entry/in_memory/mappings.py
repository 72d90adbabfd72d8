"""Lambda and CloudWatch as a diagnosis asks them, for the service in memory."""

from __future__ import annotations

from typing import Any

from fanin.adapters.memory.sqs.store import REGION
from fanin.entry.in_memory.event_source import LambdaHandler


class InMemoryLambda:
    """Lists event source mappings like boto3's client of Lambda; all of them are enabled."""

    def __init__(self) -> None:
        self._mappings: list[tuple[str, str]] = []

    def add(self, url: str, handler: LambdaHandler) -> None:
        """Note that a function consumes a queue from now on."""
        name = getattr(handler, "__name__", type(handler).__name__)
        self._mappings.append((url.rpartition("/")[2], name))

    def list_event_source_mappings(self, *, EventSourceArn: str) -> dict[str, Any]:  # noqa: N803
        """The mappings of a queue."""
        queue = EventSourceArn.rpartition(":")[2]
        return {
            "EventSourceMappings": [
                {
                    "FunctionArn": f"arn:aws:lambda:{REGION}:000000000000:function:{function}",
                    "State": "Enabled",
                }
                for name, function in self._mappings
                if name == queue
            ]
        }


class InMemoryMetrics:
    """Answers like boto3's client of CloudWatch: nothing was throttled, and no invocation failed."""

    def get_metric_data(self, **_query: Any) -> dict[str, Any]:
        """Figures of metrics, all without values."""
        return {"MetricDataResults": []}
