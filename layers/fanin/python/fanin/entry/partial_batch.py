"""Partial batch responses: which SQS messages Lambda must deliver again, and how long a message rests before.

A pause after a failed attempt is drawn at random, up to a bound that doubles each time.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from fanin.adapters.backoff import Backoff
from fanin.domain.targets import FIRST_PAUSE, LONGEST_PAUSE

SqsRecord: TypeAlias = Mapping[str, Any]
"""A record of the event that Lambda makes of SQS messages, or that event."""


def partial_batch_response(message_ids: Iterable[str]) -> dict[str, Any]:
    """Make the response that returns these messages to their queue and deletes the others.

    The event source mapping needs ``ReportBatchItemFailures``, or Lambda ignores the response. See "Handling
    errors for an SQS event source in Lambda" in the AWS Lambda Developer Guide.

        >>> partial_batch_response(["m1", "m2"])
        {'batchItemFailures': [{'itemIdentifier': 'm1'}, {'itemIdentifier': 'm2'}]}
    """
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in message_ids]}


ACKS: Final = Backoff(base=20, cap=900)
"""Seconds until a message that overload left unmarked comes again: up to a quarter of an hour."""
TARGETS: Final = Backoff(base=FIRST_PAUSE, cap=LONGEST_PAUSE)
"""Seconds until a target is told again: up to an hour."""
LEAST: Final = 5


def pause(message: Mapping[str, Any], pauses: Backoff) -> int:
    """Seconds until a message comes again, by how often it was received."""
    received = int(message.get("attributes", {}).get("ApproximateReceiveCount", 1))
    return int(pauses.delay(received - 1, at_least=LEAST))
