"""Whether a job reaches what it needs: closed ports, addresses that nobody answers, and proxies."""

import socket
import time
from collections.abc import Iterator

import pytest

from fanin.errors import NotConfigured, Unreachable
from fanin.spark.runtime import service


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes no more connections, and refuses none, as one without a route looks."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.socket() as first:
        first.connect(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_what_listens_is_reached_and_nothing_is_sent(listening):
    service.require_reachable({"SQS": f"https://{listening}", "DynamoDB": f"http://{listening}"})
    service.require_reachable({})


def test_a_closed_port_of_this_machine_is_named_and_asks_for_the_local_stack(listening, closed):
    # Given a service that is there, and one that is not
    endpoints = {"DynamoDB": f"http://{listening}", "SQS": f"http://{closed}"}
    # When both are needed
    with pytest.raises(Unreachable) as raised:
        service.require_reachable(endpoints)
    # Then the error names the one, why, and what to do
    said = str(raised.value)
    assert f"cannot reach SQS at http://{closed}: Connection refused" in said
    assert "DynamoDB" not in said
    assert "Is the local stack up?" in said
    assert "EMR" not in said


@pytest.mark.parametrize(
    ("host", "here"),
    [("localhost", True), ("sqs.localhost", True), ("[::1]", True), ("127.1.2.3", True), ("10.0.0.1", False)],
)
def test_only_addresses_of_this_machine_are_the_local_stack_s(monkeypatch, host, here):
    monkeypatch.setattr(service, "_why_not", lambda *_: "nobody listens")
    with pytest.raises(Unreachable) as raised:
        service.require_reachable({"SQS": f"http://{host}:4566"})
    assert ("fanin local up" in str(raised.value)) is here


def test_what_does_not_answer_is_given_up_at_once_however_many_there_are(silent):
    # Given so many that one after the other would take half a minute
    began = time.monotonic()
    with pytest.raises(Unreachable, match=r"no answer within 0\.3 seconds"):
        service.require_reachable({str(number): f"http://{silent}" for number in range(100)}, timeout=0.3)
    assert time.monotonic() - began < 15


def test_a_name_that_nobody_knows_is_not_reached():
    with pytest.raises(Unreachable, match=r"SQS at https://sqs\.invalid: ") as raised:
        service.require_reachable({"SQS": "https://sqs.invalid"})
    # and the error has the settings that mend it on EMR
    for setting in ("pipeline_network", "pipeline_subnets", "pipeline_security_groups"):
        assert setting in str(raised.value)


def test_behind_a_proxy_it_is_the_proxy_that_must_be_there(monkeypatch, listening, closed):
    monkeypatch.setenv("HTTPS_PROXY", f"http://{listening}")
    service.require_reachable({"SQS": "https://sqs.invalid"})
    monkeypatch.setenv("HTTPS_PROXY", closed)
    with pytest.raises(Unreachable, match="refused"):
        service.require_reachable({"SQS": "https://sqs.invalid"})


def test_services_are_where_boto3_calls_them(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert service.Service(()).endpoints("dynamodb", "scheduler", "sqs") == {
        "DynamoDB": "https://dynamodb.eu-west-1.amazonaws.com",
        "EventBridge Scheduler": "https://scheduler.eu-west-1.amazonaws.com",
        "SQS": "https://sqs.eu-west-1.amazonaws.com",
    }
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:1")
    assert service.Service(()).endpoints("sqs") == {"SQS": "http://127.0.0.1:1"}


def test_without_a_region_the_error_says_so(monkeypatch):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NotConfigured, match="region"):
        service.Service(()).endpoints("sqs")
