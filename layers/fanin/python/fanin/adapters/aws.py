"""What all AWS adapters share: client settings and the translation of errors.

Adapters take factories of clients and call them when first used, so that importing and wiring cost nothing.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, TypeVar

from botocore import exceptions
from botocore.exceptions import ClientError

from fanin.adapters.forks import closed_in_children
from fanin.errors import AccessDenied, FaninError, NotConfigured, ServiceUnavailable, Throttled

T = TypeVar("T")
SLOW_DOWN: Final = {
    "KMS.ThrottlingException",
    "KmsThrottled",
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
_EXPIRED: Final = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
_DENIED: Final = {
    "AccessDenied",
    "AccessDeniedException",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
}
MISSING: Final = {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "ResourceNotFoundException"}
_OF_CONTENT: Final = ("InvalidAttributeValue", "InvalidMessageContents", "InvalidParameterValue", "TooLong")
_NO_CREDENTIALS: Final = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
)
_FAULT: Final = 500
LEAN: Final[Mapping[str, Any]] = {"parameter_validation": False, "user_agent": "fanin"}
"""Settings for clients that send many requests, all of which are built here.

Botocore spends a third of a request's time on validating parameters and composing the user agent.
"""

CONNECT_TIMEOUT: Final = 1
"""Seconds to wait for a connection."""
READ_TIMEOUT: Final = 5
"""Seconds to wait for an answer."""
LONGEST_ATTEMPT: Final = CONNECT_TIMEOUT + READ_TIMEOUT
"""Seconds that one attempt of a request takes at most.

Before it ends, a function reserves that long for the attempt in progress (``entry/invocation.py``).
"""


def client_factory(
    service: str,
    *,
    connections: int = 10,
    attempts: int = 4,
    read_timeout: int = READ_TIMEOUT,
    time_left: Callable[[], float] | None = None,
    **more: Any,
) -> Callable[[], Any]:
    """Make a factory of clients of the default session.

    Retries are botocore's ``standard``, not ``adaptive``: on-demand tables throttle only the partition that
    is hot, but adaptive mode would slow down the writes to all partitions.

    Args:
        service: such as ``dynamodb``.
        connections: how many requests may run at a time.
        attempts: how often botocore sends a request that is not answered.
        read_timeout: seconds to wait for an answer.
        time_left: seconds in which an attempt may begin, the first or a later one; afterwards the request
            raises ``Throttled``. None sets no limit.
        **more: further settings of botocore.
    """

    def make() -> Any:
        # These imports are the slowest of all, and most processes need few clients, and need them later.
        import boto3  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415

        client = boto3.client(
            service,
            config=Config(
                connect_timeout=CONNECT_TIMEOUT,
                read_timeout=read_timeout,
                retries={"mode": "standard", "total_max_attempts": attempts},
                max_pool_connections=connections,
                tcp_keepalive=True,
                **LEAN,
                **more,
            ),
        )
        if time_left is not None:
            _limit(client, time_left)
        return closed_in_children(client)

    return make


def once(make: Callable[[], T] | None, service: str, **settings: Any) -> Callable[[], T]:
    """A client that ``make``, or else a ``client_factory`` of the service, makes when first asked for."""
    return cache(translated()(make or client_factory(service, **settings)))


def _limit(client: Any, time_left: Callable[[], float]) -> None:
    """Begin no attempt when the time is up.

    Botocore emits ``before-send`` for each attempt, and repeats an attempt only after errors of the network
    or of AWS, so the error of the handler ends the request.
    """

    def check(**_: object) -> None:
        if time_left() <= 0:
            raise Throttled("the time for this call is up; repeat it with what is left", retry_after=1)

    client.meta.events.register("before-send", check)


def blames_content(code: str) -> bool:
    """Whether SQS blames what is in a message, so that it fails however often it is sent.

    SQS refuses a whole request for it, though only one of its messages may be at fault.
    """
    return any(part in code for part in _OF_CONTENT)


def error_code(error: ClientError) -> str:
    """The service's name for the error."""
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def ignoring(codes: Collection[str]) -> Iterator[None]:
    """End a block quietly if a service answers with one of these errors."""
    try:
        yield
    except ClientError as error:
        if error_code(error) not in codes:
            raise


@contextmanager
def translated(own: Callable[[ClientError], FaninError | None] = lambda _: None) -> Iterator[None]:
    """Turn errors of AWS and of the network into fanin's; unknown ones are raised unchanged.

    Args:
        own: what an error means to this caller alone, if it does.

    Raises:
        Throttled: the service throttles, even after botocore's own retries.
        AccessDenied: credentials are missing, or do not permit the call.
        NotConfigured: no region is set, or a setting names a resource that does not exist.
        ServiceUnavailable: the service did not answer, or answered with a fault.
    """
    try:
        yield
    except ClientError as error:
        if known := own(error) or meaning(error):
            raise known from error
        raise
    except _NO_CREDENTIALS as error:
        raise AccessDenied(
            f"no AWS credentials were found: {error}; set them in the environment or a profile"
        ) from error
    except exceptions.NoRegionError as error:
        raise NotConfigured("no AWS region is set; set AWS_DEFAULT_REGION") from error
    except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
        raise ServiceUnavailable(f"no answer from AWS: {error}; try again") from error


def meaning(error: ClientError) -> FaninError | None:
    """What an error means to every caller; None if it is not known."""
    code, call = error_code(error), error.operation_name
    if code in SLOW_DOWN:
        return Throttled(f"AWS throttles {call} ({code}); try again later", retry_after=1)
    if code in _EXPIRED:
        return AccessDenied(f"the credentials have expired ({call}: {code}); renew them, and repeat")
    if code in _DENIED:
        return AccessDenied(f"the credentials do not permit {call} ({code}); check the role's policy")
    if code in MISSING:
        return NotConfigured(f"{call} found no such table, queue, bus or group; check the FANIN_ settings")
    if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= _FAULT:
        return ServiceUnavailable(f"{call} failed at AWS ({code}); try again")
    return None
