"""Where a tracker finds its services and its queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from botocore.credentials import Credentials

from fanin.adapters.aws import LEAN
from fanin.adapters.forks import closed_in_children
from fanin.adapters.system import SystemClock, SystemRandom
from fanin.app.api import Fanin
from fanin.client import local_stack
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import Identity, Sign, SigV4, Urllib3Transport
from fanin.client.local_stack import LOCAL, wants_local
from fanin.client.reading import WaitingClock
from fanin.domain import limits
from fanin.domain.access import checked_name
from fanin.entry.settings import Settings
from fanin.errors import NotConfigured
from fanin.names import ENV_API_URL, ENV_BATCHES_TABLE, ENV_PROFILE

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_sqs import SQSClient

_CONNECTIONS: Final = 32
_LOCAL_READ_TIMEOUT: Final = (
    120.0  # seconds: a burst of first calls starts a process for each on this machine
)


def sqs_client(session: boto3.Session | None = None, endpoint_url: str | None = None) -> SQSClient:
    """Make a client for producers and consumers, with enough connections for their threads."""
    import boto3  # noqa: PLC0415 - takes longer than a whole command that sends nothing to a queue
    from botocore.config import Config  # noqa: PLC0415

    config = Config(
        retries={"mode": "standard", "total_max_attempts": 5}, max_pool_connections=_CONNECTIONS, **LEAN
    )
    client: SQSClient = (session or boto3.Session()).client("sqs", endpoint_url=endpoint_url, config=config)
    return closed_in_children(client)


class StackConnection:
    """The services and queues of one stack, and the ways to connect a ``Tracker`` to them.

    Args:
        services: the eight services.
        sqs: makes the client for queues, when it is first needed.
        ack_queue_url: the ack queue, the stack's output ``AckQueueUrl``; None if it is not known.
        clock: tells the time from which a timedelta counts, and waits; the machine's by default.
    """

    def __init__(
        self,
        services: Fanin,
        sqs: Callable[[], SQSClient] = sqs_client,
        ack_queue_url: str | None = None,
        clock: WaitingClock | None = None,
    ) -> None:
        self.services = services
        self.clock: WaitingClock = clock or SystemClock()
        self._make_sqs = sqs
        self._ack_queue_url = ack_queue_url

    @cached_property
    def sqs(self) -> SQSClient:
        """The client for queues."""
        return self._make_sqs()

    @classmethod
    def from_env(cls) -> Self:
        """Connect to the stack that the environment names.

        With ``FANIN_PROFILE=local`` that is the stack of ``fanin local up``; else, with ``FANIN_API_URL``,
        the API there, called with SigV4; else, with ``FANIN_BATCHES_TABLE`` and its like, those tables.

        Raises:
            NotConfigured: no such variable is set, or not all that are needed.
        """
        settings = Settings.from_env()
        environment = settings.environment
        if wants_local(environment):
            return cls.local()
        if url := environment.get(ENV_API_URL):
            return cls.over_https(url, ack_queue_url=settings.ack_queue_url)
        if environment.get(ENV_BATCHES_TABLE):
            return cls.direct(settings)
        raise NotConfigured(
            f"no stack to talk to; set {ENV_API_URL} (the stack's output ApiUrl),"
            f" {ENV_PROFILE}={LOCAL} for the stack of `fanin local up`, or {ENV_BATCHES_TABLE} and the other"
            " tables"
        )

    @classmethod
    def local(cls, start: Path | None = None) -> Self:
        """Connect to the stack of ``fanin local up``, which the nearest ``.fanin/local.json`` describes.

        Args:
            start: the folder to search; then come those above it, and no others. By default the current
                folder and those above it; if none has the file, the stack that was started last.

        Raises:
            NotConfigured: there is no such file, or it is damaged.
        """
        stack = local_stack.nearest(start) if start else local_stack.current()
        transport = Urllib3Transport(read_timeout=_LOCAL_READ_TIMEOUT)
        keys = Identity(Credentials(stack.access_key_id, stack.secret_access_key), stack.region)
        api = HttpsApi(stack.api_url, sign=SigV4(keys), transport=transport)

        def sqs() -> SQSClient:
            return sqs_client(stack.session(), stack.endpoint_url)

        return cls(HttpsServices(api), sqs, stack.ack_queue_url)

    @classmethod
    def over_https(
        cls,
        url: str,
        *,
        session: boto3.Session | None = None,
        region: str | None = None,
        sign: Sign | None = None,
        ack_queue_url: str | None = None,
    ) -> Self:
        """Connect to the API at a URL.

        Args:
            url: the stack's output ``ApiUrl``.
            session: credentials for the API and for queues; by default boto3's default session.
            region: the API's region, if neither its URL nor the session says it.
            sign: another authentication than SigV4: ``fanin.Bearer(token)`` or ``fanin.unsigned``.
            ack_queue_url: the stack's output ``AckQueueUrl``, for ``via="queue"`` and ``ack_later``.
        """
        api = HttpsApi(url, sign=sign or SigV4(session, region))
        return cls(HttpsServices(api), lambda: sqs_client(session), ack_queue_url)

    @classmethod
    def direct(cls, settings: Settings | None = None, *, opened_by: str = "") -> Self:
        """Connect to the tables, without the API in between: for those whose role may use the tables.

        Args:
            settings: names the tables; by default the environment does (``FANIN_BATCHES_TABLE`` …).
            opened_by: name of this program, for the ``opened_by`` of its batches; at most 256 bytes. Nobody
                checks it. The API knows its callers by itself.

        Raises:
            InvalidRequest: ``opened_by`` is too long.
            NotConfigured: a table is not named.
        """
        from fanin.app.services import Services  # noqa: PLC0415 - the use cases and the DynamoDB adapters,
        from fanin.entry import wiring  # noqa: PLC0415 - which no other stack needs

        named = settings or Settings.from_env()
        ports = wiring.connect(named)
        if opened_by:
            ports = replace(ports, defaults=replace(ports.defaults, opened_by=checked_name(opened_by)))
        return cls(Services(ports, rows=limits.MAX_ROWS_DIRECT), sqs_client, named.ack_queue_url)

    @classmethod
    def in_memory(cls) -> Self:
        """Start the whole service within this process, for tests and small jobs; it ends with the process.

        What follows from a call is done before it returns, and what is due with the next call. Queues are
        made with ``tracker.sqs.create_queue``. Tests that move the clock use ``fanin.testing``.
        """
        from fanin.entry.in_memory.clock import RealClock  # noqa: PLC0415 - use cases that nobody else needs
        from fanin.entry.in_memory.runtime import Runtime  # noqa: PLC0415

        runtime = Runtime(RealClock(), SystemRandom())
        return cls(runtime.services, lambda: runtime.sqs, runtime.ack_queue_url, runtime.clock)
