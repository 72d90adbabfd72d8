"""Which URLs and which addresses a webhook may have: nothing that leads into somebody's network.

A URL is checked when it is declared and each time that it is called. Its host must be one that the operator
allows; the addresses that the host resolves to must be public. See "Server-Side Request Forgery Prevention
Cheat Sheet", OWASP.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

from fanin.domain import limits
from fanin.domain.targets import MAX_URL
from fanin.errors import InvalidRequest

HTTPS: Final = 443
EVERY_HOST: Final = "*:*"
"""Allows every host and port; for a service in memory, which calls nobody."""
ANY_PORT: Final = "*"
_LABEL: Final = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST: Final = re.compile(rf"(?!.{{254}})({_LABEL}\.)*(?=[a-z0-9-]*[a-z])(?!0x[0-9a-f]*$){_LABEL}")
"""A name that DNS may have; its last label is not a number, also not in hex, so that no form of an IPv4
address is one."""
HOST_RULE: Final = rf"(\*\.)?({_LABEL}\.)*{_LABEL}(:([0-9]{{1,5}}|\*))?"
"""One allowed host: ``hooks.example.com``, ``*.example.com``, ``hooks.example.com:8443``."""
_VISIBLE: Final = re.compile(r"[!-\[\]-~]+")
"""ASCII without spaces, control characters and the backslash, which readers of URLs disagree about."""
_NAT64: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_SPECIAL: Final = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv6Network("2d00::/8"),
    IPv6Network("2e00::/7"),
    IPv6Network("3000::/4"),
)
"""Of protocols, of relays, of documentation (RFC 9637), and what IANA holds back of the global unicast
addresses; some versions of Python count them as global."""
_LOOPBACK: Final = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))


@dataclass(frozen=True, slots=True)
class WebhookUrl:
    """A URL that has been checked.

    Attributes:
        host: name, in lower case.
        port: TCP port.
        path: with the query.
    """

    host: str
    port: int
    path: str


def parse_url(url: str, hosts: str) -> WebhookUrl:
    """Check the URL of a webhook.

    Args:
        url: as the caller gave it.
        hosts: the setting ``webhook_hosts``: hosts that are allowed, separated by commas.

    Raises:
        InvalidRequest: it is not an https URL, names no allowed host, or has parts that it must not have. The
            message does not repeat the path, which may be secret.
    """
    limits.text("the url of a webhook", url, MAX_URL, least=1)
    if not _VISIBLE.fullmatch(url):
        raise InvalidRequest(
            "the url of a webhook must be visible ASCII without a backslash; encode the rest"
        )
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as error:
        raise InvalidRequest("the url of a webhook cannot be read; write https://host/path") from error
    if parts.scheme != "https":
        raise InvalidRequest("the url of a webhook must begin with https://")
    if "@" in parts.netloc:
        raise InvalidRequest("the url of a webhook must not carry a user name or password; leave them out")
    if parts.fragment or "#" in url:
        raise InvalidRequest("the url of a webhook must not have a fragment; leave out what follows #")
    if port == 0:
        raise InvalidRequest("the url of a webhook must not have port 0; leave the port out for 443")
    if not _HOST.fullmatch(host):
        raise InvalidRequest("the url of a webhook must name its host; an IP address is refused")
    found = WebhookUrl(host, HTTPS if port is None else port, _path(parts.path, parts.query))
    if not any(_allows(rule, found) for rule in rules(hosts)):
        shown = host if found.port == HTTPS else f"{host}:{found.port}"
        raise InvalidRequest(
            f"webhooks to {limits.shown(shown)} are not allowed; ask the operator to add the host to the"
            " setting webhook_hosts"
        )
    return found


def rules(hosts: str) -> list[str]:
    """The allowed hosts of a setting, each on its own."""
    return [rule.strip().lower() for rule in hosts.split(",") if rule.strip()]


def _path(path: str, query: str) -> str:
    return (path or "/") + (f"?{query}" if query else "")


def _allows(rule: str, url: WebhookUrl) -> bool:
    name, _, port = rule.partition(":")
    if port != ANY_PORT and url.port != int(port or HTTPS):
        return False
    if name == EVERY_HOST[0]:
        return True
    if name.startswith("*."):
        return url.host.endswith(name[1:]) and len(url.host) > len(name) - 1
    return url.host == name


def is_public(address: str, *, loopback: bool = False) -> bool:
    """Whether an address is one of the public internet.

    Refused are loopback, private, link-local and unique local addresses, those of carriers' translators, of
    documentation and of multicast, the unspecified address, and IPv6 addresses that stand for such an IPv4
    address.

    Args:
        address: as the resolver gives it.
        loopback: accept addresses of this machine; for a stack that runs on it.
    """
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if loopback and any(found.version == network.version and found in network for network in _LOOPBACK):
        return True
    if isinstance(found, IPv6Address):
        if any(found in network for network in _NAT64):
            return False
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is not None:
            return False
        if found in IPv6Network("::/96") or found.is_site_local:
            return False
    if any(found.version == network.version and found in network for network in _SPECIAL):
        return False
    return found.is_global and not found.is_multicast and not found.is_reserved
