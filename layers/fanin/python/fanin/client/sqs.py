"""SQS for producers and consumers: which messages it takes, and its errors as errors of fanin."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from botocore import exceptions

from fanin import errors
from fanin.adapters.aws import LEAN
from fanin.adapters.forks import closed_in_children
from fanin.domain import limits

if TYPE_CHECKING:
    import boto3
    import mypy_boto3_sqs

    SQSClient: TypeAlias = mypy_boto3_sqs.SQSClient
else:
    SQSClient = Any  # the stubs are for checkers alone

logger = logging.getLogger("fanin")

_CONNECTIONS: Final = 32
_SERVER_FAULT: Final = 500
_DENIED: Final = ("AccessDenied", "ExpiredToken", "InvalidClientTokenId", "SignatureDoesNotMatch")
_UNKNOWN_QUEUE: Final = ("NonExistentQueue", "QueueDoesNotExist")
_OF_THE_PROTOCOL: Final = " for this wsdl version"
"""What SQS adds where a queue does not exist, from the time when it spoke SOAP."""


def sqs_client(session: boto3.Session | None = None, endpoint_url: str | None = None) -> SQSClient:
    """Make a client for producers and consumers, with enough connections for their threads."""
    import boto3  # noqa: PLC0415 - takes longer than a whole command that sends nothing to a queue
    from botocore.config import Config  # noqa: PLC0415

    config = Config(
        retries={"mode": "standard", "total_max_attempts": 5}, max_pool_connections=_CONNECTIONS, **LEAN
    )
    client: SQSClient = (session or boto3.Session()).client("sqs", endpoint_url=endpoint_url, config=config)
    return closed_in_children(client)


def refusal_text(code: str, message: str | None) -> str:
    """What SQS said when it refused something, to be shown: the code and the message without a full stop.

    Args:
        code: of the error, or of the entry that failed.
        message: of the same; SQS may leave it out.
    """
    said = (message or "").replace(_OF_THE_PROTOCOL, "").strip().removesuffix(".")
    return f"{code}: {said}" if said else code


@contextmanager
def queue_errors(queue_url: str) -> Iterator[None]:
    """Raise botocore's errors of calls on a queue as errors of fanin.

    Args:
        queue_url: the queue, for the message.

    Raises:
        AccessDenied: the credentials do not allow the call, or have expired.
        NotConfigured: the queue does not exist, or credentials or a region are missing.
        Throttled: SQS asked to slow down.
        ServiceUnavailable: SQS did not answer, or answered with a fault of its own.
        RequestTooLarge: the messages of the request have more bytes than the queue accepts.
        InvalidRequest: SQS refused the request for what is in it.
    """
    try:
        yield
    except exceptions.ClientError as error:
        raise _translated(error, queue_url) from error
    except (exceptions.NoCredentialsError, exceptions.NoRegionError) as error:
        raise errors.NotConfigured(
            f"{error}; configure AWS credentials and region to use {queue_url}"
        ) from error
    except exceptions.ParamValidationError as error:
        raise errors.InvalidRequest(str(error)) from error
    except exceptions.BotoCoreError as error:
        raise errors.ServiceUnavailable(f"no answer from SQS for {queue_url}: {error}") from error


class PolledQueue:
    """A queue that is polled: up to ten messages at a time.

    Args:
        sqs: client.
        url: of the queue.
        wait: seconds that a poll waits for messages, 0 to 20.
        visibility_timeout: seconds for which others do not get the messages; None leaves it to the queue.

    Raises:
        InvalidRequest: an argument is not what it should be.
    """

    def __init__(self, sqs: SQSClient, url: str, *, wait: int, visibility_timeout: int | None = None) -> None:
        self._sqs = sqs
        self._url = limits.text("queue_url", url, limits.MAX_CHANNEL, least=1)
        self._options: Any = {"WaitTimeSeconds": limits.whole("wait", wait, 0, limits.MAX_WAIT)}
        if visibility_timeout is not None:
            most = limits.MAX_VISIBILITY_TIMEOUT
            hidden = limits.whole("visibility_timeout", visibility_timeout, 0, most)
            self._options["VisibilityTimeout"] = hidden

    def receive(self) -> list[Mapping[str, Any]]:
        """Receive messages; raises like ``queue_errors``."""
        with queue_errors(self._url):
            answer = self._sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=limits.MAX_QUEUE_MESSAGES,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
                **self._options,
            )
        return list(answer.get("Messages", []))

    def delete(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Delete messages that were received; raises like ``queue_errors``."""
        if not messages:
            return
        entries: list[Any] = [
            {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
            for place, message in enumerate(messages)
        ]
        with queue_errors(self._url):
            answer = self._sqs.delete_message_batch(QueueUrl=self._url, Entries=entries)
        for failure in answer.get("Failed", []):
            message_id = messages[int(failure["Id"])]["MessageId"]
            logger.warning("message %s is done but comes again: %s", message_id, failure["Code"])


def _translated(error: exceptions.ClientError, queue_url: str) -> errors.FaninError:
    code = error.response["Error"]["Code"]
    message = f"{queue_url}: {refusal_text(code, error.response['Error'].get('Message'))}"
    if any(part in code for part in _DENIED):
        return errors.AccessDenied(f"{message}; check that your credentials may use this queue")
    if any(part in code for part in _UNKNOWN_QUEUE):
        return errors.NotConfigured(f"{message}; check the URL and region of the queue")
    if "Throttl" in code:
        return errors.Throttled(message)
    if error.response["ResponseMetadata"]["HTTPStatusCode"] >= _SERVER_FAULT:
        return errors.ServiceUnavailable(message)
    if "TooLong" in code or "must be shorter than" in message:
        return errors.RequestTooLarge(message)
    return errors.InvalidRequest(message)


REQUEST_BYTES: Final = limits.MAX_QUEUE_BYTES
"""Most bytes of one message or request that every queue accepts."""


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
        raise errors.RequestTooLarge(
            f"the message has {size} bytes, but a queue takes {most_bytes}; put the content in S3 and send "
            "its key"
        )
