"""Whether a queue is there, asked before anything is staged and a batch is opened."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fanin.client.sqs import queue_errors
from fanin.errors import AccessDenied, InvalidRequest, NotConfigured

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


_NO_ACCESS: Final = "or you do not have access"
"""What SQS may answer to a role without the permission, as to one that asks for a queue that is not there."""


def check_url(queue: str) -> str:
    """Refuse what is not the URL of a queue.

    Returns:
        The URL.

    Raises:
        InvalidRequest: the text is empty, or is not a URL; says what a URL looks like.
    """
    try:
        at = urlsplit(queue)
    except ValueError:  # a bracket that is not closed
        at = urlsplit("")
    if at.scheme in {"http", "https"} and at.netloc:
        return queue
    if not queue:
        raise InvalidRequest("the URL of the queue is empty; if it comes from a variable, set that")
    raise InvalidRequest(
        f"{queue!r} is not the URL of a queue, which looks like"
        " https://sqs.eu-west-1.amazonaws.com/123456789012/work"
    )


def check_queue(sqs: SQSClient, queue: str) -> None:
    """Refuse a queue that is not there.

    Asks with ``GetQueueAttributes``. A role may be allowed to send without being allowed to look. Then SQS
    denies it, or says that the queue "does not exist or you do not have access to it" (SQS Developer Guide,
    "Troubleshooting API errors"). The fan-out goes on, and standard error says that nobody looked.

    Raises:
        NotConfigured: there is no such queue; nothing was staged or sent.
        InvalidRequest: SQS does not take this as the URL of a queue.
        ServiceUnavailable, Throttled: SQS does not answer.
    """
    try:
        with queue_errors(queue):
            sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    except AccessDenied:
        _say_unseen(queue)
    except (InvalidRequest, NotConfigured) as error:
        if _NO_ACCESS in str(error):
            _say_unseen(queue)
            return
        raise type(error)(f"{error}. This run has staged and sent nothing") from error


def _say_unseen(queue: str) -> None:
    sys.stderr.write(
        f"this job may not look at {queue} (sqs:GetQueueAttributes), so a missing queue shows only later\n"
    )
