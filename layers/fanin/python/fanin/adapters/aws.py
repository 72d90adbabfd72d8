"""What all AWS adapters share: client settings and the translation of errors.

Clients are handed over as factories and made at the first call, so that importing and wiring cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from botocore import exceptions
from botocore.exceptions import ClientError

from fanin.errors import AccessDenied, FaninError, NotConfigured, ServiceUnavailable, Throttled

_SLOW_DOWN: Final = {
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionConflictException",
    "TransactionInProgressException",
}
_DENIED: Final = {
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredTokenException",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
}
_MISSING: Final = {
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "ResourceNotFoundException",
}
_NO_CREDENTIALS: Final = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
)
_FAULT: Final = 500
LEAN: Final[Mapping[str, Any]] = {"parameter_validation": False, "user_agent": "fanin"}
"""Settings of clients that send many requests, all of them built here.

Botocore spends a third of a request's time on checking its shape and on putting a user agent together.
"""


def client_factory(
    service: str, *, connections: int = 10, attempts: int = 4, read_timeout: int = 8
) -> Callable[[], Any]:
    """Say how to make a client of the default session.

    Retries are botocore's ``standard``, not ``adaptive``: on-demand tables throttle the one partition that
    is hot, and adaptive mode would slow down the writes to all the others with it.

    Args:
        service: such as ``dynamodb``.
        connections: most requests at a time.
        attempts: how often botocore sends a request whose answer does not come.
        read_timeout: seconds until it does not come.
    """

    def make() -> Any:
        # The heaviest imports there are, and most processes that load this need one client, later.
        import boto3  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415

        return boto3.client(
            service,
            config=Config(
                connect_timeout=2,
                read_timeout=read_timeout,
                retries={"mode": "standard", "total_max_attempts": attempts},
                max_pool_connections=connections,
                tcp_keepalive=True,
                **LEAN,
            ),
        )

    return make


def error_code(error: ClientError) -> str:
    """The service's name for the error."""
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def translated() -> Iterator[None]:
    """Turn what AWS and the network raise into fanin's errors; what is not known passes as it is.

    Raises:
        Throttled: the service asked to slow down, also after botocore's own retries.
        AccessDenied: credentials are missing, or do not allow the call.
        NotConfigured: no region is set, or what a setting names does not exist.
        ServiceUnavailable: no answer, or a fault of the service.
    """
    try:
        yield
    except ClientError as error:
        known = _translate(error)
        if known is None:
            raise
        raise known from error
    except _NO_CREDENTIALS as error:
        raise AccessDenied(f"no AWS credentials: {error}") from error
    except exceptions.NoRegionError as error:
        raise NotConfigured("no AWS region is set; set AWS_REGION") from error
    except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
        raise ServiceUnavailable(f"no answer from AWS, try again: {error}") from error


def _translate(error: ClientError) -> FaninError | None:
    code, call = error_code(error), error.operation_name
    if code in _SLOW_DOWN:
        return Throttled(f"AWS asked to slow down ({call}: {code}); try again later", retry_after=1)
    if code in _DENIED:
        return AccessDenied(f"the credentials do not allow {call} ({code}); check the role's policy")
    if code in _MISSING:
        return NotConfigured(f"{call} found no such table, queue, bus or group; check the FANIN_ settings")
    if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= _FAULT:
        return ServiceUnavailable(f"{call} failed at AWS ({code}); try again")
    return None
