"""Partial batch responses: how a function tells Lambda which SQS messages must be delivered again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from fanin.entry.observe import logger
from fanin.errors import FaninError

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


def handle_each(event: Message, handle: Callable[[Message], None]) -> dict[str, Any]:
    """Handle each message on its own, and return those that failed to the queue.

    Args:
        event: what Lambda hands over.
        handle: handles a message; whatever it raises is logged, and holds up no other message.

    Returns:
        The partial batch response: messages that failed.
    """
    failed: list[str] = []
    for message in event["Records"]:
        message_id = message["messageId"]
        try:
            handle(message)
        except FaninError as error:
            logger.warning("message failed", extra={"message_id": message_id, "code": error.code})
            failed.append(message_id)
        except Exception:  # noqa: BLE001  a defect that one message brings to light must spare the others
            logger.exception("message failed", extra={"message_id": message_id})
            failed.append(message_id)
    return partial_batch_response(failed)
