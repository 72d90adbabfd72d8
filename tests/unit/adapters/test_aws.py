from collections.abc import Callable

import pytest
from botocore import exceptions
from botocore.exceptions import ClientError

from fanin.adapters.aws import client_factory, translated
from fanin.errors import AccessDenied, FaninError, NotConfigured, ServiceUnavailable, Throttled


def client_error(code: str, status: int = 400) -> ClientError:
    response = {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "UpdateItem")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (client_error("ThrottlingException"), Throttled),
        (client_error("ProvisionedThroughputExceededException"), Throttled),
        (client_error("RequestLimitExceeded"), Throttled),
        (client_error("TransactionConflictException"), Throttled),
        (client_error("InternalServerError", 500), ServiceUnavailable),
        (client_error("Anything", 503), ServiceUnavailable),
        (client_error("AccessDeniedException"), AccessDenied),
        (client_error("ExpiredTokenException"), AccessDenied),
        (client_error("ResourceNotFoundException"), NotConfigured),
        (exceptions.NoCredentialsError(), AccessDenied),
        (exceptions.NoRegionError(), NotConfigured),
        (exceptions.EndpointConnectionError(endpoint_url="u"), ServiceUnavailable),
        (exceptions.ReadTimeoutError(endpoint_url="u"), ServiceUnavailable),
        (exceptions.ConnectionClosedError(endpoint_url="u"), ServiceUnavailable),
    ],
)
def test_what_is_known_becomes_an_error_of_fanin(error: Exception, expected: type[FaninError]) -> None:
    with pytest.raises(expected) as caught, translated():
        raise error

    assert type(caught.value) is expected
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [client_error("ValidationException"), KeyError("k"), Throttled("t")])
def test_what_is_not_known_passes_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, translated():
        raise error

    assert caught.value is error


def test_a_client_waits_briefly_and_has_a_connection_for_every_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    make: Callable[[], object] = client_factory("dynamodb", connections=16)

    config = make().meta.config

    assert config.max_pool_connections == 16
    assert config.retries["mode"] == "standard"
    assert config.connect_timeout + config.read_timeout <= 10
