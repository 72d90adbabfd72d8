"""Targets: who is called back when a batch ends, each on its own.

A caller declares them when it opens a batch. They are kept beside the batch, and each is told once the batch
has ended: at least once, and not again after it is known to have been told.

A webhook may lead into nobody's network. Its URL is checked when it is declared and each time that it is
called. Its host must be one that the operator allows; the addresses that the host resolves to must be public.
See "Server-Side Request Forgery Prevention Cheat Sheet", OWASP.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from fanin.domain import limits
from fanin.errors import InvalidRequest

MAX_TARGETS = 5
MAX_TASK_TOKEN = 2_048
"""Characters; see "SendTaskSuccess", AWS Step Functions API Reference."""
MAX_CALLBACK_ID = 1_024
"""Characters; see "SendDurableExecutionCallbackSuccess", AWS Lambda API Reference."""
CALLBACK_ID = "[A-Za-z0-9+/]+={0,2}"
MAX_URL = 2_048
"""Characters of a webhook's URL."""
FIRST_PAUSE = 20
LONGEST_PAUSE = 3_600
"""Seconds until a target is told again at the latest: after the first attempt, and at most."""
PATIENCE_MS = 86_400_000
"""How long a target is tried before it is parked."""
_SHOWN = 4


class TargetType(StrEnum):
    STEP_FUNCTIONS = "step_functions"
    DURABLE_CALLBACK = "durable_callback"
    SQS = "sqs"
    WEBHOOK = "webhook"


class When(StrEnum):
    """What a target is told of.

    Attributes:
        COMPLETE: the batch ended ``complete``, and none of its items failed.
        FAILED: every other end.
        ANY: every end.
        FAILING: not of an end, but of the first failure.
        WAITING: that only held items are left.
        PROGRESS: each milestone.
    """

    COMPLETE = "complete"
    FAILED = "failed"
    ANY = "any"
    FAILING = "failing"
    WAITING = "waiting"
    PROGRESS = "progress"

    @property
    def early(self) -> bool:
        """Whether it is told of something before the end, and not of the end."""
        return self in {When.FAILING, When.WAITING, When.PROGRESS}


class TargetState(StrEnum):
    """How far a target is.

    Attributes:
        PENDING: nobody has tried to tell it.
        FAILED: it was tried, and is tried again.
        DELIVERED: it was told, or waits for nothing any more.
        SKIPPED: the batch ended in a way that it did not ask for, or without what it asked for.
        PARKED: it was tried for a day, or refuses for good; it is told again only on request.
    """

    PENDING = "pending"
    FAILED = "failed"
    DELIVERED = "delivered"
    SKIPPED = "skipped"
    PARKED = "parked"

    @property
    def settled(self) -> bool:
        """Whether nothing more is to be done, however often a job asks for it."""
        return self in {TargetState.DELIVERED, TargetState.SKIPPED}


@dataclass(frozen=True, slots=True)
class Target:
    """Who is called back when a batch ends. A type has exactly one of the fields below ``when``.

    Attributes:
        type: what it is.
        when: what it is told of.
        task_token: of a Step Functions task that waits, up to 2,048 characters.
        callback_id: of a callback of a Lambda durable function, up to 1,024 characters.
        queue_url: URL or ARN of a standard SQS queue with the tag ``fanin:channel``.
        url: of a webhook; https only.
    """

    type: TargetType
    when: When = When.ANY
    task_token: str | None = field(default=None, repr=False)
    callback_id: str | None = field(default=None, repr=False)
    queue_url: str | None = field(default=None, repr=False)
    url: str | None = field(default=None, repr=False)

    @property
    def to(self) -> str:
        """Where it points, with everything masked that would let a reader use it."""
        if self.type is TargetType.SQS:
            return (self.queue_url or "").rpartition("/")[2]
        if self.type is TargetType.WEBHOOK:
            return f"https://{urlsplit(self.url or '').hostname}/…"
        secret = self.task_token or self.callback_id or ""
        return f"…{secret[-_SHOWN:]}" if len(secret) > 4 * _SHOWN else "…"

    def wants(self, succeeded: bool) -> bool:
        """Whether it is told of an end; ``succeeded``: complete, and no item failed."""
        if self.when.early:
            return False
        return self.when is When.ANY or (self.when is When.COMPLETE) is succeeded


FIELD: Mapping[TargetType, str] = {
    TargetType.STEP_FUNCTIONS: "task_token",
    TargetType.DURABLE_CALLBACK: "callback_id",
    TargetType.SQS: "queue_url",
    TargetType.WEBHOOK: "url",
}
"""The one field that says where a target of the type is."""


@dataclass(frozen=True, slots=True)
class TargetReport:
    """A target of a batch, and how far it is.

    Attributes:
        number: place among the batch's targets, from 0.
        type: what it is.
        when: what it is told of.
        to: where it points; tokens and the paths of URLs are masked.
        state: how far it is.
        attempts: how often somebody tried to tell it and noted the outcome.
        last_error: why the last attempt failed; None if it did not.
        delivered_at: when it was told, ms; None if it was not.
        failing_since: when the attempts began that have failed so far, ms; None if none has.
        next_at: when it is tried again at the latest, ms; None if it is not.
    """

    number: int
    type: TargetType
    when: When
    to: str
    state: TargetState
    attempts: int = 0
    last_error: str | None = None
    delivered_at: int | None = None
    failing_since: int | None = None
    next_at: int | None = None


@dataclass(frozen=True, slots=True)
class TargetReports:
    """The targets of a batch.

    Attributes:
        targets: in the order in which they were declared.
    """

    targets: Sequence[TargetReport]


HTTPS = 443
EVERY_HOST = "*:*"
"""Allows every host and port; for a service in memory, which calls nobody."""
ANY_PORT = "*"
_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?!.{{254}})({_LABEL}\.)*(?=[a-z0-9-]*[a-z])(?!0x[0-9a-f]*$){_LABEL}")
"""A name that DNS may have; its last label is not a number, also not in hex, so that no form of an IPv4
address is one."""
HOST_RULE = rf"(\*\.)?({_LABEL}\.)*{_LABEL}(:([0-9]{{1,5}}|\*))?"
"""One allowed host: ``hooks.example.com``, ``*.example.com``, ``hooks.example.com:8443``."""
_VISIBLE = re.compile(r"[!-\[\]-~]+")
"""ASCII without spaces, control characters and the backslash, which readers of URLs disagree about."""
_SPECIAL = (
    *(IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24")),
    *(IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"), IPv6Network("::/96")),
    *(IPv6Network("2d00::/8"), IPv6Network("2e00::/7"), IPv6Network("3000::/4")),
)
"""Of protocols and relays; those that stand for an IPv4 address; of documentation (RFC 9637), and what IANA
holds back of the global unicast addresses. Some versions of Python count some of them as global."""
_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))


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
    for refused, must in (
        (parts.scheme != "https", "begin with https://"),
        ("@" in parts.netloc, "not carry a user name or password; leave them out"),
        (parts.fragment or "#" in url, "not have a fragment; leave out what follows #"),
        (port == 0, "not have port 0; leave the port out for 443"),
        (not _HOST.fullmatch(host), "name its host; an IP address is refused"),
    ):
        if refused:
            raise InvalidRequest(f"the url of a webhook must {must}")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    found = WebhookUrl(host, HTTPS if port is None else port, path)
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
    found = ip_address(address.partition("%")[0])
    if loopback and any(found in network for network in _LOOPBACK):
        return True
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is not None or found.is_site_local:
            return False
    if any(found in network for network in _SPECIAL):
        return False
    return found.is_global and not found.is_multicast and not found.is_reserved
