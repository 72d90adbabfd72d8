"""Event source mappings in memory: a function consumes a queue."""

import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fanin.adapters.memory.sqs import MessageInFlight, Queue, QueueStore
from fanin.adapters.memory.sqs.client import md5, system_attributes
from fanin.adapters.memory.sqs.queue import REGION

logger = logging.getLogger("fanin")

QueueRecord: TypeAlias = Mapping[str, Any]
LambdaHandler: TypeAlias = Callable[[dict[str, Any], Any], Any]
"""Takes an event and a context; returns ``batchItemFailures``, or nothing if all went well."""

MOST: Final = 10


@dataclass(frozen=True)
class LambdaContext:
    """The context of an invocation.

    Attributes:
        function_name: of the function.
        aws_request_id: of the invocation.
        memory_limit_in_mb: memory.
        invoked_function_arn: ARN of the function.
    """

    function_name: str
    aws_request_id: str
    memory_limit_in_mb: int = 128
    invoked_function_arn: str = f"arn:aws:lambda:{REGION}:000000000000:function:memory"

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the invocation times out, which it never does here."""
        return 900_000


@dataclass
class EventSource:
    """Hands the messages of a queue to a function, ten at a time, and removes those that it handled.

    Messages that the function reports, or all if it raises or its answer is malformed, come again when the
    queue's visibility timeout is over.

    Attributes:
        store: has the queue.
        url: of the queue, which may be deleted and made again.
        handler: the function.
        most: messages of one call.
    """

    store: QueueStore
    url: str
    handler: LambdaHandler
    most: int = MOST
    _calls: int = 0

    def due(self) -> int | None:
        with self.store.lock:
            queue = self.store.find(self.url)
            return queue.next_visible() if queue else None

    def run(self) -> bool:
        with self.store.lock:
            queue, due = self.store.find(self.url), self.due()
            if queue is None or due is None or due > queue.clock.now():
                return False
            # Hidden for at least a second: with a timeout of 0, a message that always fails would loop.
            messages = queue.receive(self.most, max(1, queue.seconds("VisibilityTimeout")))
        if not messages:
            return True  # the messages were received too often, and moved to the dead-letter queue
        handles = {message.message_id: message.handle for message in messages}
        again = self._invoke(queue, messages)
        with self.store.lock:
            for message_id in handles.keys() - again:
                queue.remove(handles[message_id])
        return True

    def _invoke(self, queue: Queue, messages: Sequence[MessageInFlight]) -> set[str]:
        """Call the function, and return the ids of the messages to deliver again."""
        self._calls += 1
        context = LambdaContext(f"consumer of {queue.name}", f"{queue.name}-{self._calls}")
        ids = {message.message_id for message in messages}
        try:
            answer = self.handler({"Records": [record(queue, message) for message in messages]}, context)
        except Exception:
            logger.warning("%s failed: its messages come again", context.function_name, exc_info=True)
            return ids
        failures = answer.get("batchItemFailures") or [] if isinstance(answer, Mapping) else []
        try:
            failed = {failure["itemIdentifier"] for failure in failures}
        except (KeyError, TypeError):
            logger.warning("%s gave a malformed answer: its messages come again", context.function_name)
            return ids
        return ids if failed - ids else failed  # as Lambda does when a function reports an unknown id


def record(queue: Queue, held: MessageInFlight) -> dict[str, Any]:
    """A message as Lambda hands it to a function."""
    return {
        "messageId": held.message_id,
        "receiptHandle": held.handle,
        "body": held.body,
        "attributes": system_attributes(held),
        "messageAttributes": {name: _attribute(value) for name, value in held.attributes.items()},
        "md5OfBody": md5(held.body),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue.arn,
        "awsRegion": REGION,
    }


def _attribute(value: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"stringListValues": [], "binaryListValues": [], "dataType": value["DataType"]}
    if "BinaryValue" in value:
        return told | {"binaryValue": base64.b64encode(value["BinaryValue"]).decode()}
    return told | {"stringValue": value["StringValue"]}


def each(handle: Callable[[QueueRecord], object]) -> LambdaHandler:
    """Make a handler from a function of one message; messages on which it raises are reported as failed."""

    def handler(event: QueueRecord, _context: Any) -> dict[str, Any]:
        failed = []
        for message in event["Records"]:
            try:
                handle(message)
            except Exception:
                logger.warning("message %s failed and comes again", message["messageId"], exc_info=True)
                failed.append({"itemIdentifier": message["messageId"]})
        return {"batchItemFailures": failed}

    return handler


class Consumers:
    """Answers like boto3's clients of Lambda and CloudWatch: all consumers are enabled, none has trouble."""

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
                    "UUID": f"{name}-{function}",
                }
                for name, function in self._mappings
                if name == queue
            ]
        }

    def get_metric_data(self, **_query: Any) -> dict[str, Any]:
        """Figures of metrics, all without values."""
        return {"MetricDataResults": []}
