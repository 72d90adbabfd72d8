"""Webhooks: HTTPS requests to hosts that users name, from a function that must not reach anything else.

A host is resolved once and checked, and the connection goes to the address that was checked. A request takes
ten seconds at most, follows no redirects, and is signed as Standard Webhooks 1.0 says
(https://www.standardwebhooks.com).
"""

import base64
import binascii
import hashlib
import hmac
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException, HTTPSConnection
from threading import Lock, Timer
from typing import Any, Final, TypeAlias

from botocore.exceptions import ClientError

from fanin.adapters.aws import error_code, once, translated
from fanin.app.ports.queues import ChannelNotice
from fanin.app.ports.system import Clock
from fanin.domain.targets import HTTPS, WebhookUrl, is_public, parse_url
from fanin.errors import InvalidRequest, NotConfigured, ServiceUnavailable, TargetRefused
from fanin.wire.json_text import compact
from fanin.wire.json_types import encode_time

Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""The addresses of a host, for a port."""

MOST_ADDRESSES: Final = 4
"""How many addresses of one host are tried."""
_LEAST: Final = 0.001
"""Seconds; a timeout of 0 would make a socket wait for nothing at all."""


def resolve(host: str, port: int) -> list[str]:
    """Ask the resolver of this machine.

    Raises:
        OSError: the host has no address.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def public_addresses(
    host: str, port: int, resolve: Resolve = resolve, *, loopback: bool = False
) -> list[str]:
    """Resolve a host, and refuse it if any of its addresses is not public.

    Args:
        host: name.
        port: TCP port.
        resolve: asks for addresses.
        loopback: accept addresses of this machine.

    Raises:
        ServiceUnavailable: it does not resolve, or to an address that is refused.
    """
    try:
        addresses = resolve(host, port)
    except (OSError, UnicodeError) as error:
        raise ServiceUnavailable("the host of the webhook does not resolve") from error
    if not addresses:
        raise ServiceUnavailable("the host of the webhook has no address")
    if not all(is_public(address, loopback=loopback) for address in addresses):
        raise ServiceUnavailable("the host of the webhook has an address that is not public; it is refused")
    return list(addresses[:MOST_ADDRESSES])


@cache
def trusted() -> ssl.SSLContext:
    """TLS 1.2 or later, with the certificates that this machine trusts; host names are checked."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class PinnedConnection(HTTPSConnection):
    """A connection for one host to one address.

    Args:
        host: name, for SNI, the certificate and the header ``Host``.
        port: TCP port.
        address: where to connect; it is not resolved.
        timeout: seconds that connecting may take, TLS included, and then each step.
        context: of TLS.
    """

    def __init__(
        self, host: str, port: int, address: str, *, timeout: float, context: ssl.SSLContext
    ) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._address = address
        self._most = timeout
        self._tls = context

    def connect(self) -> None:
        """Connect to the address; proxies of the environment are not used."""
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        plain = socket.socket(family, socket.SOCK_STREAM)
        until = time.monotonic() + self._most
        try:
            plain.settimeout(self._most)
            plain.connect((self._address, self.port))
            # A handshake may take what is left, and not as long again.
            plain.settimeout(max(_LEAST, until - time.monotonic()))
            self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise


REMEMBERED_MS: Final = 300_000
"""How long a value is used before it is read again, so that a rotation takes effect."""


class Secret:
    """The current value of one secret.

    Args:
        arn: gives the ARN of the secret, at each read; what it raises is raised there.
        clock: tells the age of the value.
        client: makes the client, when first used.
    """

    def __init__(self, arn: Callable[[], str], clock: Clock, client: Callable[[], Any] | None = None) -> None:
        self._arn = arn
        self._clock = clock
        self._client = once(client, "secretsmanager")
        self._value: tuple[int, str] | None = None
        self._lock = Lock()

    def __call__(self) -> str:
        """The value.

        Raises:
            NotConfigured: no secret is named, there is none of that name, or its value is no text or cannot
                be had, such as while it is being deleted.
            AccessDenied: this process may not read it.
        """
        with self._lock:
            now = self._clock.now()
            if self._value is None or now - self._value[0] >= REMEMBERED_MS:
                self._value = now, self._read()
            return self._value[1]

    def _read(self) -> str:
        try:
            with translated():
                answer = self._client().get_secret_value(SecretId=self._arn())
        except ClientError as error:
            raise NotConfigured(
                f"the secret cannot be read ({error_code(error)}); check that it is not being deleted, and"
                " that its encryption key is enabled"
            ) from error
        value: str | None = answer.get("SecretString")
        if value is None:
            raise NotConfigured("the secret has a binary value; put a text there")
        return value


PREFIX: Final = "whsec_"
LEAST: Final = 24
"""Bytes that a secret has at least."""


def signed_headers(secret: str, message_id: str, at: int, body: bytes) -> Mapping[str, str]:
    """The headers with which a receiver checks that a request is the service's, and recent.

    Args:
        secret: base64, with or without the prefix ``whsec_``.
        message_id: the same for every attempt, so that a receiver can drop a repeat.
        at: seconds since the epoch, of this attempt.
        body: of the request.

    Raises:
        NotConfigured: the secret is not base64 of 24 bytes or more.
    """
    content = b".".join((message_id.encode(), str(at).encode(), body))
    signature = base64.b64encode(hmac.digest(_key(secret), content, hashlib.sha256)).decode()
    return {"webhook-id": message_id, "webhook-timestamp": str(at), "webhook-signature": f"v1,{signature}"}


def _key(secret: str) -> bytes:
    text = secret.strip().removeprefix(PREFIX)
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < LEAST:
        raise NotConfigured(
            f"the secret of webhooks must be {PREFIX} and base64 of at least {LEAST} bytes; put one into the"
            " secret that the stack created"
        )
    return key


TIMEOUT: Final = 10.0
"""Seconds that one attempt takes at most, from the first connection to the status of the answer."""
_GONE: Final = 410


@dataclass(frozen=True)
class Webhooks:
    """Posts notices to webhooks.

    Attributes:
        hosts: gives the hosts that are allowed, at each call.
        secret: gives the secret that signs requests, at each call.
        clock: tells the time of an attempt.
        loopback: whether a receiver on this machine is accepted.
        resolve: asks for the addresses of a host.
        context: gives the TLS settings.
        timeout: seconds that one attempt takes at most.
    """

    hosts: Callable[[], str]
    secret: Callable[[], str]
    clock: Clock
    loopback: Callable[[], bool] = lambda: False
    resolve: Resolve = resolve
    context: Callable[[], ssl.SSLContext] = trusted
    timeout: float = TIMEOUT

    def post(self, url: str, notice: ChannelNotice) -> None:
        """Post a notice; any answer but 2xx is an error.

        Raises:
            TargetRefused: the URL is not allowed (any more), or the receiver says that it is gone for good.
            ServiceUnavailable: it did not take the notice. The message says why, without the URL.
        """
        try:
            place = parse_url(url, self.hosts())
        except InvalidRequest as error:
            raise TargetRefused(str(error)) from error
        body = webhook_body(notice)
        signed = signed_headers(self.secret(), notice.event.id, self.clock.now() // 1000, body)
        headers = {"content-type": "application/json", "user-agent": "fanin", **signed}
        addresses = public_addresses(place.host, place.port, self.resolve, loopback=self.loopback())
        status = self._status(place, addresses, headers, body)
        if status in range(200, 300):
            return
        if status == _GONE:
            raise TargetRefused("the webhook answered 410: it is gone for good")
        if status in range(300, 400):
            raise ServiceUnavailable(f"the webhook answered {status}; redirects are not followed")
        raise ServiceUnavailable(f"the webhook answered {status}")

    def _status(
        self, place: WebhookUrl, addresses: list[str], headers: Mapping[str, str], body: bytes
    ) -> int:
        until = time.monotonic() + self.timeout
        for number, address in enumerate(addresses, 1):
            left = until - time.monotonic()
            if left <= 0:
                break
            connection = PinnedConnection(
                place.host, place.port, address, timeout=left, context=self.context()
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


def webhook_body(notice: ChannelNotice) -> bytes:
    """The body that Standard Webhooks recommends: type, timestamp, and the event's detail as data."""
    event = notice.event
    kind, at = f"batch.{event.id.rpartition('.')[2]}", encode_time(event.time)
    data = {**event.detail, "id": event.id, "detail_type": event.detail_type}
    return compact({"type": kind, "timestamp": at, "data": data}).encode()


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
