from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from botocore import exceptions
from botocore.awsrequest import AWSResponse, HeadersDict
from botocore.exceptions import ClientError

from fanin.adapters.aws import LONGEST_ATTEMPT, client_factory, translated
from fanin.errors import AccessDenied, NotConfigured, ServiceUnavailable, Throttled


def client_error(code: str, status: int = 400) -> ClientError:
    response = {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "UpdateItem")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (client_error("ThrottlingException"), Throttled),
        (client_error("ProvisionedThroughputExceededException"), Throttled),
        (client_error("KmsThrottled"), Throttled),
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
def test_what_is_known_becomes_an_error_of_fanin(error, expected):
    with pytest.raises(expected) as caught, translated():
        raise error

    assert type(caught.value) is expected
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [client_error("ValidationException"), KeyError("k"), Throttled("t")])
def test_what_is_not_known_passes_as_it_is(error):
    with pytest.raises(type(error)) as caught, translated():
        raise error

    assert caught.value is error


def test_a_client_waits_briefly_and_has_a_connection_for_every_thread(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    make: Callable[[], object] = client_factory("dynamodb", connections=16)

    config = make().meta.config

    assert config.max_pool_connections == 16
    assert config.retries["mode"] == "standard"
    assert config.connect_timeout + config.read_timeout == LONGEST_ATTEMPT


class TestTimeLeft:
    """A function that begins a request shortly before its end must still be able to answer."""

    @staticmethod
    def client(left: list[float], *, attempts: int, status: int) -> tuple[Any, list[str]]:
        """A client whose attempts are answered with ``status``, and the attempts that it sent."""
        client = client_factory("dynamodb", attempts=attempts, time_left=lambda: left.pop(0))()
        sent: list[str] = []

        def answer(request: Any, **_: object) -> AWSResponse:
            sent.append(request.method)
            return AWSResponse(request.url, status, HeadersDict(), SimpleNamespace(stream=lambda: [b"{}"]))

        client.meta.events.register_last("before-send", answer)
        return client, sent

    def test_a_request_is_sent_while_there_is_time(self):
        client, sent = self.client([0.1], attempts=3, status=200)

        client.list_tables()

        assert len(sent) == 1

    @pytest.mark.parametrize("attempts", [1, 3])
    def test_a_request_is_not_begun_when_the_time_is_up(self, attempts):
        client, sent = self.client([0.0], attempts=attempts, status=200)

        with pytest.raises(Throttled, match="the time for this call is up"):
            client.list_tables()
        assert sent == []

    def test_a_fault_is_not_tried_again_when_the_time_is_up(self):
        client, sent = self.client([5.0, -1.0], attempts=3, status=500)

        with pytest.raises(Throttled, match="the time for this call is up"):
            client.list_tables()
        assert len(sent) == 1
