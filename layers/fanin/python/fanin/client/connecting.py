"""Where a tracker finds its ledger and its queues."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import boto3
from botocore.config import Config

from fanin.adapters.aws import LEAN
from fanin.adapters.system import SystemRandom
from fanin.app.api import Fanin
from fanin.app.services import Services
from fanin.client import local_stack
from fanin.client.clock import Clock
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import Sign, SigV4, Urllib3Transport
from fanin.entry.settings import Settings
from fanin.errors import NotConfigured
from fanin.names import ENV_API_URL, ENV_BATCHES_TABLE, ENV_PROFILE

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

LOCAL: Final = "local"
_CONNECTIONS: Final = 32
_LOCAL_READ_TIMEOUT: Final = 120.0  # a burst of first calls starts a process for each of them on this machine


class Connection(NamedTuple):
    """What a tracker needs, in the order of its constructor."""

    services: Fanin
    sqs: Callable[[], SQSClient]
    ack_queue_url: str | None
    clock: Clock | None = None


def from_env() -> Connection:
    """The stack that the environment names; see ``Tracker.from_env``."""
    settings = Settings.from_env()
    environment = settings.environment
    profile = environment.get(ENV_PROFILE)
    if profile == LOCAL:
        return local()
    if profile:
        raise NotConfigured(f"{ENV_PROFILE} is {profile!r}; the only profile is {LOCAL!r}")
    if url := environment.get(ENV_API_URL):
        return over_https(url, ack_queue_url=settings.ack_queue_url)
    if environment.get(ENV_BATCHES_TABLE):
        return direct(settings)
    raise NotConfigured(
        f"no stack to talk to; set {ENV_API_URL} (the stack's output ApiUrl), {ENV_PROFILE}={LOCAL} "
        f"for the stack of `fanin local up`, or {ENV_BATCHES_TABLE} and the other tables"
    )


def local(start: Path | None = None) -> Connection:
    """The stack of ``fanin local up``, described in the nearest ``.fanin`` folder from ``start`` upwards."""
    stack = local_stack.nearest(start or Path.cwd())
    session = stack.session()
    transport = Urllib3Transport(read_timeout=_LOCAL_READ_TIMEOUT)
    api = HttpsApi(stack.api_url, sign=SigV4(session, stack.region), transport=transport)
    sqs = partial(sqs_client, session, stack.endpoint_url)
    return Connection(HttpsServices(api), sqs, stack.ack_queue_url)


def over_https(
    url: str,
    *,
    session: boto3.Session | None = None,
    region: str | None = None,
    sign: Sign | None = None,
    ack_queue_url: str | None = None,
) -> Connection:
    """The API at a URL; see ``Tracker.over_https``."""
    api = HttpsApi(url, sign=sign or SigV4(session, region))
    return Connection(HttpsServices(api), lambda: sqs_client(session), ack_queue_url)


def direct(settings: Settings | None = None) -> Connection:
    """Tables, without the API between; see ``Tracker.direct``."""
    from fanin.entry import wiring  # noqa: PLC0415 - the DynamoDB adapters, which no other ledger needs

    named = settings or Settings.from_env()
    services = Services(wiring.connect(named))
    return Connection(services, sqs_client, named.ack_queue_url)


def in_memory() -> Connection:
    """The whole service within this process; see ``Tracker.in_memory``."""
    from fanin.entry.in_memory.clock import RealClock  # noqa: PLC0415 - use cases that nobody else needs
    from fanin.entry.in_memory.runtime import Runtime  # noqa: PLC0415

    runtime = Runtime(RealClock(), SystemRandom())
    return Connection(runtime.services, lambda: runtime.sqs, runtime.ack_queue_url, runtime.clock)


def sqs_client(session: boto3.Session | None = None, endpoint_url: str | None = None) -> SQSClient:
    """A client for producers and consumers, with connections for their threads."""
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 5}, max_pool_connections=_CONNECTIONS, **LEAN
    )
    client: SQSClient = (session or boto3.Session()).client("sqs", endpoint_url=endpoint_url, config=config)
    return client
