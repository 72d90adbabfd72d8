"""Messages of a queue that are handled each on its own, so that one that fails holds up no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fanin.entry.observe import logger
from fanin.entry.partial_batch import SqsRecord, partial_batch_response
from fanin.errors import FaninError


def handle_each(event: SqsRecord, handle: Callable[[SqsRecord], None]) -> dict[str, Any]:
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
