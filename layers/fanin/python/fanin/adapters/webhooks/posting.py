"""Posting to a webhook: one request, ten seconds, no redirects."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException
from threading import Timer
from typing import Final

from fanin.adapters.webhooks.connecting import PinnedConnection, Resolve, public_addresses, resolve, trusted
from fanin.adapters.webhooks.signing import signed_headers
from fanin.app.ports.channels import Notice
from fanin.app.ports.system import Clock
from fanin.domain.targets import HTTPS, WebhookUrl, parse_url
from fanin.errors import InvalidRequest, ServiceUnavailable, TargetRefused
from fanin.wire.json_text import compact
from fanin.wire.json_types import encode_time

TIMEOUT: Final = 10.0
"""Seconds that one attempt takes at most, from the first connection to the status of the answer."""
_OK: Final = range(200, 300)
_REDIRECT: Final = range(300, 400)
_GONE: Final = 410


class Webhooks:
    """Posts notices to webhooks.

    Args:
        hosts: gives the hosts that are allowed, at each call.
        secret: gives the secret that signs requests, at each call.
        clock: tells the time of an attempt.
        loopback: whether a receiver on this machine is accepted.
        resolve: asks for the addresses of a host.
        context: gives the TLS settings.
        timeout: seconds that one attempt takes at most.
    """

    def __init__(
        self,
        hosts: Callable[[], str],
        secret: Callable[[], str],
        clock: Clock,
        *,
        loopback: Callable[[], bool] = lambda: False,
        resolve: Resolve = resolve,
        context: Callable[[], ssl.SSLContext] = trusted,
        timeout: float = TIMEOUT,
    ) -> None:
        self._hosts = hosts
        self._secret = secret
        self._clock = clock
        self._loopback = loopback
        self._resolve = resolve
        self._context = context
        self._timeout = timeout

    def post(self, url: str, notice: Notice) -> None:
        """Post a notice; any answer but 2xx is an error.

        Raises:
            TargetRefused: the URL is not allowed (any more), or the receiver says that it is gone for good.
            ServiceUnavailable: it did not take the notice. The message says why, without the URL.
        """
        try:
            place = parse_url(url, self._hosts())
        except InvalidRequest as error:
            raise TargetRefused(str(error)) from error
        body = webhook_body(notice)
        headers = {
            "content-type": "application/json",
            "user-agent": "fanin",
            **signed_headers(self._secret(), notice.event.id, self._clock.now() // 1000, body),
        }
        addresses = public_addresses(place.host, place.port, self._resolve, loopback=self._loopback())
        status = self._status(place, addresses, headers, body)
        if status in _OK:
            return
        if status == _GONE:
            raise TargetRefused("the webhook answered 410: it is gone for good")
        if status in _REDIRECT:
            raise ServiceUnavailable(f"the webhook answered {status}; redirects are not followed")
        raise ServiceUnavailable(f"the webhook answered {status}")

    def _status(
        self, place: WebhookUrl, addresses: list[str], headers: Mapping[str, str], body: bytes
    ) -> int:
        until = time.monotonic() + self._timeout
        for number, address in enumerate(addresses, 1):
            left = until - time.monotonic()
            if left <= 0:
                break
            connection = PinnedConnection(
                place.host, place.port, address, timeout=left, context=self._context()
            )
            try:
                connection.connect()
            except ssl.SSLError as error:
                raise ServiceUnavailable(f"no TLS with the webhook: {error.reason or 'failed'}") from error
            except OSError as error:
                if number == len(addresses):
                    raise ServiceUnavailable(f"no connection to the webhook: {_reason(error)}") from error
                continue
            with _ended_by(connection, until):
                return _exchange(connection, place, headers, body)
        raise ServiceUnavailable("the webhook took too long to connect")


def webhook_body(notice: Notice) -> bytes:
    """The body that Standard Webhooks recommends: type, timestamp, and the event's detail as data."""
    event = notice.event
    content = {
        "type": f"batch.{event.id.rpartition('.')[2]}",
        "timestamp": encode_time(event.time),
        "data": {**event.detail, "id": event.id, "detail_type": event.detail_type},
    }
    return compact(content).encode()


def _exchange(
    connection: PinnedConnection, place: WebhookUrl, headers: Mapping[str, str], body: bytes
) -> int:
    """Send the request, and read the status of the answer; its body is not read."""
    host = place.host if place.port == HTTPS else f"{place.host}:{place.port}"
    try:
        connection.request("POST", place.path, body, {"host": host, **headers})
        return connection.getresponse().status
    except (OSError, HTTPException, ValueError) as error:
        raise ServiceUnavailable(f"the webhook did not answer: {_reason(error)}") from error


@contextmanager
def _ended_by(connection: PinnedConnection, until: float) -> Iterator[None]:
    """Break the connection off when the time is up: a receiver that sends byte by byte resets timeouts."""
    tls = connection.sock

    def end() -> None:
        with suppress(OSError):
            socket.socket.shutdown(tls, socket.SHUT_RDWR)

    timer = Timer(max(0.0, until - time.monotonic()), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        connection.close()


def _reason(error: Exception) -> str:
    """What went wrong, by its kind alone: texts of errors may repeat what the receiver sent."""
    return "the time was up" if isinstance(error, TimeoutError) else type(error).__name__
