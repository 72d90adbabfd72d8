"""Connections go to the very address that was checked, and TLS checks the name."""

from __future__ import annotations

import socket
import ssl
import time
from typing import Any

import pytest

from fanin.adapters.webhooks import (
    MOST_ADDRESSES,
    PinnedConnection,
    public_addresses,
    resolve,
    trusted,
)
from fanin.errors import ServiceUnavailable
from tests.e2e.receiver import Receiver


@pytest.mark.parametrize("private", ["127.0.0.1", "169.254.169.254", "::1", "10.1.2.3", "fd00:ec2::254"])
def test_a_host_with_one_address_that_is_not_public_is_refused(private: str) -> None:
    with pytest.raises(ServiceUnavailable, match="not public"):
        public_addresses("hooks.example.com", 443, lambda _host, _port: ["1.1.1.1", private])


def test_a_host_that_does_not_resolve_is_an_error_without_its_name() -> None:
    def fails(_host: str, _port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known: hooks.example.com")

    for resolver in (fails, lambda _host, _port: []):
        with pytest.raises(ServiceUnavailable) as refused:
            public_addresses("hooks.example.com", 443, resolver)
        assert "example" not in str(refused.value)


def test_few_addresses_are_tried() -> None:
    many = [f"1.1.1.{number}" for number in range(1, 20)]
    assert public_addresses("hooks.example.com", 443, lambda _host, _port: many) == many[:MOST_ADDRESSES]


def test_this_machine_resolves_its_own_name() -> None:
    assert set(resolve("localhost", 443)) <= {"127.0.0.1", "::1"}


def test_the_socket_goes_to_the_address_and_nobody_resolves_the_name_again(
    receiver: Receiver, trusting: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_certificate_of_another_name_is_refused(receiver: Receiver, trusting: ssl.SSLContext) -> None:
    connection = PinnedConnection(
        "other.example.com", receiver.port, "127.0.0.1", timeout=5, context=trusting
    )
    with pytest.raises(ssl.SSLCertVerificationError):
        connection.connect()


def test_tls_is_of_today() -> None:
    assert trusted().minimum_version >= ssl.TLSVersion.TLSv1_2
    assert trusted().check_hostname


def test_tls_may_take_what_connecting_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
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
