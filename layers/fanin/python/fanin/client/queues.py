"""SQS as producers and consumers see it: its faults told in fanin's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
)

from fanin.errors import (
    AccessDenied,
    FaninError,
    InvalidRequest,
    NotConfigured,
    ServiceUnavailable,
    Throttled,
)

REQUEST_BYTES: Final = 262_144
"""Bytes of one request or message that every queue takes.

SQS itself takes 1 MiB since August 2025, but a queue's MaximumMessageSize may still be the older limit.
"""

_SERVER_FAULT: Final = 500
_DENIED: Final = ("AccessDenied", "ExpiredToken", "InvalidClientTokenId", "SignatureDoesNotMatch")
_UNKNOWN_QUEUE: Final = ("NonExistentQueue", "QueueDoesNotExist")


def fifo(queue: str) -> bool:
    """Whether the queue of this URL or ARN is a FIFO queue, which SQS makes its name tell."""
    return queue.endswith(".fifo")


@contextmanager
def queue_errors(queue_url: str) -> Iterator[None]:
    """Translate the errors of calls on a queue.

    Raises:
        AccessDenied: the credentials do not allow the call.
        NotConfigured: there is no such queue, or no credentials or region to reach it with.
        Throttled: SQS asked to slow down.
        ServiceUnavailable: SQS did not answer, or answered with a fault of its own.
        InvalidRequest: SQS refused the request.
    """
    try:
        yield
    except ClientError as error:
        raise _translated(error, queue_url) from error
    except (NoCredentialsError, NoRegionError) as error:
        raise NotConfigured(f"{error}; configure AWS credentials and region to use {queue_url}") from error
    except ParamValidationError as error:
        raise InvalidRequest(str(error)) from error
    except BotoCoreError as error:
        raise ServiceUnavailable(f"no answer from SQS for {queue_url}: {error}") from error


def _translated(error: ClientError, queue_url: str) -> FaninError:
    code = error.response["Error"]["Code"]
    said = f"{queue_url}: {code}: {error.response['Error']['Message']}"
    if any(part in code for part in _DENIED):
        return AccessDenied(f"{said}; check that your credentials may use this queue")
    if any(part in code for part in _UNKNOWN_QUEUE):
        return NotConfigured(f"{said}; check the URL and region of the queue")
    if "Throttl" in code:
        return Throttled(said)
    if error.response["ResponseMetadata"]["HTTPStatusCode"] >= _SERVER_FAULT:
        return ServiceUnavailable(said)
    return InvalidRequest(said)
