"""Messages of SQS: how large they may be, and which characters they carry."""

from __future__ import annotations

from typing import Final

from fanin.domain import limits
from fanin.errors import RequestTooLarge

REQUEST_BYTES: Final = limits.MAX_QUEUE_BYTES
"""Most bytes of one message or request that every queue accepts."""

MOST_BYTES: Final = limits.MAX_SQS_BYTES
"""Most bytes of one message or request that SQS accepts at all."""


def check_body(body: str, most_bytes: int) -> None:
    """Check that every queue takes a body, and hands it on as it is.

    Args:
        body: a message's text.
        most_bytes: most bytes of a message in UTF-8.

    Raises:
        InvalidRequest: the body has a character that SQS does not allow.
        RequestTooLarge: the body has too many bytes.
    """
    limits.sendable("the message", body)
    size = len(body.encode())
    if size > most_bytes:
        raise RequestTooLarge(
            f"the message has {size} bytes, but a queue takes {most_bytes}; put the content in S3 and send "
            "its key"
        )
