"""Partial batch responses: how a function tells Lambda which SQS messages must be delivered again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Message: TypeAlias = Mapping[str, Any]
"""A record of the event that Lambda makes of SQS messages, or that event."""


def partial_batch_response(message_ids: Iterable[str]) -> dict[str, Any]:
    """Make the response that returns these messages to their queue and deletes the others.

    The event source mapping needs ``ReportBatchItemFailures``, or Lambda ignores the response. See "Handling
    errors for an SQS event source in Lambda" in the AWS Lambda Developer Guide.

        >>> partial_batch_response(["m1", "m2"])
        {'batchItemFailures': [{'itemIdentifier': 'm1'}, {'itemIdentifier': 'm2'}]}
    """
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in message_ids]}
