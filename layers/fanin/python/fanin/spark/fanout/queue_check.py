"""Whether a queue is there, asked before anything is staged and a batch is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fanin.client.sqs_errors import queue_errors
from fanin.errors import AccessDenied, InvalidRequest, NotConfigured

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


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

    Asks with ``GetQueueAttributes``. A role that may send need not be allowed to look, so that it may not
    does not matter here.

    Args:
        sqs: client.
        queue: its URL.

    Raises:
        NotConfigured: there is no such queue; nothing was staged or sent.
        ServiceUnavailable, Throttled: SQS does not answer.
    """
    try:
        with queue_errors(queue):
            sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    except AccessDenied:
        return
    except (InvalidRequest, NotConfigured) as error:
        raise type(error)(f"{error}. This run has staged and sent nothing") from error
