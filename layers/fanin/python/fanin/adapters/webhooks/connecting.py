"""Connections to hosts that users name: resolved once, checked, and made to the address that was checked.

A name may resolve to a public address when it is checked and to a private one a moment later. So nobody
resolves it a second time: the socket goes to the address, and TLS checks the certificate against the name.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Sequence
from functools import cache
from http.client import HTTPSConnection
from typing import Final, TypeAlias

from fanin.domain.targets import is_public
from fanin.errors import ServiceUnavailable

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
