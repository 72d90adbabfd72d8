"""One request to a webhook: what it carries, and what its answer means."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from standardwebhooks import Webhook

from fanin.adapters.system import SystemClock
from fanin.adapters.webhooks import Webhooks, trusted
from fanin.app.ports.channels import ChannelNotice
from fanin.app.ports.events import Event
from fanin.errors import ServiceUnavailable, TargetRefused
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


def test_a_receiver_gets_type_time_and_detail_and_can_verify_them(post, receiver: Receiver) -> None:
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
def test_any_answer_but_success_is_an_error(
    post, receiver: Receiver, status: int, error: type, why: str
) -> None:
    path = f"/secret-{status}"
    receiver.statuses[path] = status
    with pytest.raises(error, match=why) as refused:
        post(path)
    assert "secret" not in str(refused.value)
    assert receiver.of("/elsewhere") == []


def test_a_host_that_is_not_allowed_any_more_is_refused_for_good(trusting: ssl.SSLContext) -> None:
    webhooks = Webhooks(lambda: "", lambda: SECRET, SystemClock(), context=lambda: trusting)
    with pytest.raises(TargetRefused, match="not allowed"):
        webhooks.post("https://hooks.example.com/x", NOTICE)


def test_a_name_that_was_public_and_leads_inside_now_reaches_nobody(
    post, receiver: Receiver, trusting: ssl.SSLContext
) -> None:
    # Given a resolver that answers differently each time
    answers: Iterator[list[str]] = iter([["127.0.0.1"], ["1.1.1.1"]])
    rebound = webhooks(trusting, loopback=lambda: False, resolve=lambda _host, _port: next(answers))
    # When it leads inside, then no connection is made, whatever it would say a moment later
    with pytest.raises(ServiceUnavailable, match="not public"):
        post("/rebound", to=rebound)
    assert receiver.of("/rebound") == []
    assert next(answers) == ["1.1.1.1"]


def test_a_port_where_nobody_listens_is_an_error(trusting: ssl.SSLContext) -> None:
    with pytest.raises(ServiceUnavailable, match="no connection"):
        webhooks(trusting).post("https://hooks.example.com:1/x", NOTICE)


def test_the_next_address_is_tried_if_one_refuses(post, receiver: Receiver, trusting: ssl.SSLContext) -> None:
    post("/second", to=webhooks(trusting, "127.0.0.2", "127.0.0.1"))
    assert len(receiver.of("/second")) == 1


def test_a_certificate_that_nobody_trusts_is_an_error(post, receiver: Receiver) -> None:
    with pytest.raises(ServiceUnavailable, match="no TLS"):
        post("/untrusted", to=webhooks(trusted()))
    assert receiver.of("/untrusted") == []


def test_a_receiver_that_drips_is_broken_off_in_time(
    receiver: Receiver, trusting: ssl.SSLContext, certificate
) -> None:
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


def test_the_detail_of_a_large_event_is_sent_whole(post, receiver: Receiver) -> None:
    event = EVENT._replace(detail={"text": "x" * 250_000})
    post("/large", ChannelNotice(event, succeeded=True))
    assert len(json.loads(receiver.of("/large")[0].body)["data"]["text"]) == 250_000
