"""Webhooks: what a request carries and what its answer means; to which address it goes; how it is signed."""

import base64
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from standardwebhooks import Webhook

from fanin.adapters.memory import FixedClock
from fanin.adapters.system import SystemClock
from fanin.adapters.webhooks import (
    MOST_ADDRESSES,
    REMEMBERED_MS,
    PinnedConnection,
    Secret,
    Webhooks,
    public_addresses,
    resolve,
    signed_headers,
    trusted,
)
from fanin.app.ports.events import Event
from fanin.app.ports.queues import ChannelNotice
from fanin.errors import AccessDenied, NotConfigured, ServiceUnavailable, TargetRefused
from tests.e2e.receiver import Receiver

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
EVENT = Event("1/eu/shop/7.timed_out", "Batch Timed Out", {"batch_id": 7, "failed": 0}, 1_790_000_000_000)
NOTICE = ChannelNotice(EVENT, succeeded=False)


def webhooks(trusting: ssl.SSLContext, *addresses: str, **options: Any) -> Webhooks:
    """Webhooks to a host that has these addresses."""
    return Webhooks(
        lambda: "hooks.example.com:*",
        lambda: SECRET,
        SystemClock(),
        context=lambda: trusting,
        **{
            "loopback": lambda: True,
            "resolve": lambda _host, _port: list(addresses or ["127.0.0.1"]),
            **options,
        },
    )


@pytest.fixture
def post(receiver: Receiver, trusting: ssl.SSLContext) -> Callable[..., None]:
    def post(path: str, notice: ChannelNotice = NOTICE, to: Webhooks | None = None) -> None:
        (to or webhooks(trusting)).post(receiver.url(path, "hooks.example.com"), notice)

    return post


def test_a_receiver_gets_type_time_and_detail_and_can_verify_them(post, receiver):
    post("/x?y=z")

    (request,) = receiver.of("/x?y=z")
    told = Webhook(SECRET).verify(request.body, request.headers)
    assert told == {
        "type": "batch.timed_out",
        "timestamp": "2026-09-21T14:13:20.000Z",
        "data": {"batch_id": 7, "failed": 0, "id": "1/eu/shop/7.timed_out", "detail_type": "Batch Timed Out"},
    }
    assert request.headers["host"] == f"hooks.example.com:{receiver.port}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-id"] == "1/eu/shop/7.timed_out"


@pytest.mark.parametrize(
    ("status", "error", "why"),
    [
        (302, ServiceUnavailable, "redirects are not followed"),
        (400, ServiceUnavailable, "answered 400"),
        (410, TargetRefused, "gone for good"),
        (503, ServiceUnavailable, "answered 503"),
    ],
)
def test_any_answer_but_success_is_an_error(post, receiver, status, error, why):
    path = f"/secret-{status}"
    receiver.statuses[path] = status
    with pytest.raises(error, match=why) as refused:
        post(path)
    assert "secret" not in str(refused.value)
    assert receiver.of("/elsewhere") == []


def test_a_host_that_is_not_allowed_any_more_is_refused_for_good(trusting):
    webhooks = Webhooks(lambda: "", lambda: SECRET, SystemClock(), context=lambda: trusting)
    with pytest.raises(TargetRefused, match="not allowed"):
        webhooks.post("https://hooks.example.com/x", NOTICE)


def test_a_name_that_was_public_and_leads_inside_now_reaches_nobody(post, receiver, trusting):
    # Given a resolver that answers differently each time
    answers: Iterator[list[str]] = iter([["127.0.0.1"], ["1.1.1.1"]])
    rebound = webhooks(trusting, loopback=lambda: False, resolve=lambda _host, _port: next(answers))
    # When it leads inside, then no connection is made, whatever it would say a moment later
    with pytest.raises(ServiceUnavailable, match="not public"):
        post("/rebound", to=rebound)
    assert receiver.of("/rebound") == []
    assert next(answers) == ["1.1.1.1"]


def test_a_port_where_nobody_listens_is_an_error(trusting):
    with pytest.raises(ServiceUnavailable, match="no connection"):
        webhooks(trusting).post("https://hooks.example.com:1/x", NOTICE)


def test_the_next_address_is_tried_if_one_refuses(post, receiver, trusting):
    post("/second", to=webhooks(trusting, "127.0.0.2", "127.0.0.1"))
    assert len(receiver.of("/second")) == 1


def test_a_certificate_that_nobody_trusts_is_an_error(post, receiver):
    with pytest.raises(ServiceUnavailable, match="no TLS"):
        post("/untrusted", to=webhooks(trusted()))
    assert receiver.of("/untrusted") == []


def test_a_receiver_that_drips_is_broken_off_in_time(receiver, trusting, certificate):
    # Given a receiver that sends a byte every tenth of a second, and so meets every timeout of the socket
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    listening = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        plain, _ = listening.accept()
        with context.wrap_socket(plain, server_side=True) as tls:
            for byte in b"HTTP/1.1 200 OK\r\nx: " + b"y" * 600:
                try:
                    tls.send(bytes([byte]))
                except OSError:
                    return
                time.sleep(0.1)

    threading.Thread(target=drip, daemon=True).start()
    # When
    began = time.monotonic()
    url = f"https://hooks.example.com:{listening.getsockname()[1]}/x"
    with pytest.raises(ServiceUnavailable, match="did not answer"):
        webhooks(trusting, timeout=1.0).post(url, NOTICE)
    # Then it took not nearly the minute of all bytes
    assert time.monotonic() - began < 30
    listening.close()


def test_the_detail_of_a_large_event_is_sent_whole(post, receiver):
    event = EVENT._replace(detail={"text": "x" * 250_000})
    post("/large", ChannelNotice(event, succeeded=True))
    assert len(json.loads(receiver.of("/large")[0].body)["data"]["text"]) == 250_000


@pytest.mark.parametrize("private", ["127.0.0.1", "169.254.169.254", "::1", "10.1.2.3", "fd00:ec2::254"])
def test_a_host_with_one_address_that_is_not_public_is_refused(private):
    with pytest.raises(ServiceUnavailable, match="not public"):
        public_addresses("hooks.example.com", 443, lambda _host, _port: ["1.1.1.1", private])


def test_a_host_that_does_not_resolve_is_an_error_without_its_name():
    def fails(_host: str, _port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known: hooks.example.com")

    for resolver in (fails, lambda _host, _port: []):
        with pytest.raises(ServiceUnavailable) as refused:
            public_addresses("hooks.example.com", 443, resolver)
        assert "example" not in str(refused.value)


def test_few_addresses_are_tried():
    many = [f"1.1.1.{number}" for number in range(1, 20)]
    assert public_addresses("hooks.example.com", 443, lambda _host, _port: many) == many[:MOST_ADDRESSES]


def test_this_machine_resolves_its_own_name():
    assert set(resolve("localhost", 443)) <= {"127.0.0.1", "::1"}


def test_the_socket_goes_to_the_address_and_nobody_resolves_the_name_again(receiver, trusting, monkeypatch):
    # Given a resolver that would lead elsewhere by now
    def no_more(*_: object, **__: object) -> None:
        raise AssertionError("resolved a second time")

    monkeypatch.setattr(socket, "getaddrinfo", no_more)
    # When
    connection = PinnedConnection(
        "hooks.example.com", receiver.port, "127.0.0.1", timeout=5, context=trusting
    )
    connection.request("POST", "/pinned", b"{}")
    # Then the receiver at the address answers, under the name
    assert connection.getresponse().status == 200
    connection.close()
    (request,) = receiver.of("/pinned")
    assert request.headers["host"].startswith("hooks.example.com")


def test_a_certificate_of_another_name_is_refused(receiver, trusting):
    connection = PinnedConnection(
        "other.example.com", receiver.port, "127.0.0.1", timeout=5, context=trusting
    )
    with pytest.raises(ssl.SSLCertVerificationError):
        connection.connect()


def test_tls_is_of_today():
    assert trusted().minimum_version >= ssl.TLSVersion.TLSv1_2
    assert trusted().check_hostname


def test_tls_may_take_what_connecting_has_left(monkeypatch):
    """Else a receiver that is slow at each step takes twice the time that there is."""
    now, timeouts = 100.0, []

    class Slow(socket.socket):
        def connect(self, _address: object) -> None:
            nonlocal now
            timeouts.append(self.gettimeout())
            now += 7

    class Tls(ssl.SSLContext):
        def wrap_socket(self, sock: socket.socket, **_: object) -> Any:
            timeouts.append(sock.gettimeout())
            raise TimeoutError

    monkeypatch.setattr(socket, "socket", Slow)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    connection = PinnedConnection(
        "hooks.example.com", 443, "192.0.2.1", timeout=10, context=Tls(ssl.PROTOCOL_TLS_CLIENT)
    )

    with pytest.raises(TimeoutError):
        connection.connect()

    assert timeouts == [10, 3]


def test_a_receiver_can_verify_what_is_signed():
    body = '{"total":"3 €"}'.encode()

    headers = signed_headers(SECRET, "7.complete", int(time.time()), body)

    assert Webhook(SECRET).verify(body, dict(headers)) == {"total": "3 €"}
    assert headers["webhook-id"] == "7.complete"


def test_the_signature_is_that_of_the_specification():
    # The example of Standard Webhooks
    example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = signed_headers(example, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_secret_that_the_stack_generates_is_one():
    """44 letters and digits, without the prefix."""
    generated = "aB3" * 14 + "xy"
    headers = signed_headers(generated, "1", int(time.time()), b"{}")
    Webhook(f"whsec_{generated}").verify(b"{}", dict(headers))


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "not base64!"])
def test_a_weak_or_malformed_secret_is_refused(secret):
    with pytest.raises(NotConfigured, match="whsec_"):
        signed_headers(secret, "1", 1, b"")


ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:webhooks-abcdef"


@pytest.fixture
def client() -> Any:
    return boto3.client(
        "secretsmanager", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="y"
    )


def test_a_secret_is_remembered_for_a_while_and_then_read_again(client):
    clock = FixedClock()
    secret = Secret(lambda: ARN, clock, lambda: client)
    with Stubber(client) as stub:
        for value in ("first", "second"):
            answer = {"ARN": ARN, "Name": "webhooks", "SecretString": value}
            stub.add_response("get_secret_value", answer, {"SecretId": ARN})
        assert [secret(), secret()] == ["first", "first"]
        clock.advance(REMEMBERED_MS)
        assert secret() == "second"


def test_a_refusal_is_told(client):
    with Stubber(client) as stub:
        stub.add_client_error("get_secret_value", "AccessDeniedException", http_status_code=400)
        with pytest.raises(AccessDenied):
            Secret(lambda: ARN, FixedClock(), lambda: client)()


def test_a_secret_that_cannot_be_used_says_so_as_an_error_of_fanin(client):
    """Any other error would be a defect: its target would be tried for weeks, and never say why."""
    with Stubber(client) as stub:
        secret = Secret(lambda: ARN, FixedClock(), lambda: client)
        for code in ("InvalidRequestException", "DecryptionFailure"):
            stub.add_client_error("get_secret_value", code, http_status_code=400)
            with pytest.raises(NotConfigured, match=code):
                secret()
        stub.add_response("get_secret_value", {"ARN": ARN, "Name": "webhooks", "SecretBinary": b"x" * 32})
        with pytest.raises(NotConfigured, match="binary"):
            secret()
