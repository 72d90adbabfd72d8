"""The stack, as the tasks of a job reach it, and how fast they write to it."""

import os
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from ipaddress import ip_address
from math import inf
from threading import Lock
from typing import Any, Final, Self
from urllib.parse import urlsplit

from botocore.utils import get_environ_proxies

from fanin.adapters.aws import client_factory, translated
from fanin.adapters.backoff import Backoff
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.metering import Meter
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Services
from fanin.client.local_stack import IGNORE_ENDPOINTS, LOCAL, profiled, wants_local
from fanin.client.tracker import Tracker
from fanin.domain import limits
from fanin.entry import wiring
from fanin.entry.settings import Settings
from fanin.errors import NotConfigured, Unreachable
from fanin.names import ENV_PROFILE

_REFUSALS: Final = frozenset(
    {"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"}
)
_KEPT: Final = 0.7
"""Share of its rate that a process keeps after a refusal."""
_STEPS: Final = 50
"""Seconds in which a rate without refusals grows by what it was when it was cut."""
_SLOWEST: Final = 1.0
"""Writes a second that are always tried."""
_WINDOW: Final = 1.0
"""Seconds in which any number of refusals cuts the rate once."""

_UNITS: Final[Mapping[str, Callable[[bytes], int]]] = {
    **dict.fromkeys(("UpdateItem", "PutItem", "DeleteItem"), lambda _: 1),
    "BatchWriteItem": lambda body: body.count(b'"PutRequest"') + body.count(b'"DeleteRequest"'),
    "TransactWriteItems": lambda body: 2 * body.count(b'"TableName"'),
}
"""Operation → write units of a request, from its body; no row of fanin's is larger than 1 KB, but notes."""


class SharedPace:
    """Additive increase, multiplicative decrease, as TCP shares a line.

    A process knows nothing of the others, yet all of them together find the rate that the table takes, and
    share it. Until the first refusal there is no limit but ``most``. Safe with threads.

    Source: D. Chiu, R. Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in
    Computer Networks", 1989.
    """

    def __init__(
        self,
        most: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep, self._lock = clock, sleep, Lock()
        self._rate = self._most = inf if most is None else most
        self._step = self._last = 0.0
        self._next = self._since = self._grown_at = clock()
        self._cut_at = -inf
        self._sent = 0

    def attach(self, client: Any) -> None:
        """Let a client send its writes at this pace, repeated attempts included, and learn from refusals."""
        for operation, units in _UNITS.items():
            client.meta.events.register(f"before-send.dynamodb.{operation}", self._before(units))
            client.meta.events.register(f"needs-retry.dynamodb.{operation}", self._answered)

    def wait(self, units: int = 1) -> None:
        """Wait until the next units may be sent."""
        with self._lock:
            now = self._grow()
            if now - self._since >= _WINDOW:
                self._last = self._sent / (now - self._since)
                self._since, self._sent = now, 0
            self._sent += units
            starts = max(now, self._next)
            self._next = starts + units / self._rate
        if starts > now:
            self._sleep(starts - now)

    def refused(self) -> None:
        """Send less from now on."""
        with self._lock:
            now = self._grow()
            if now - self._cut_at < _WINDOW:
                return
            sending = max(self._last, self._sent / max(now - self._since, _WINDOW))
            before = min(sending, self._rate)
            self._step = max(before, _SLOWEST) / _STEPS
            self._rate = max(before * _KEPT, _SLOWEST)
            self._cut_at = self._grown_at = now

    def _grow(self) -> float:
        """Add to the rate what the time until now has brought; the lock is held."""
        now = self._clock()
        self._rate = min(self._rate + self._step * (now - self._grown_at), self._most)
        self._grown_at = now
        return now

    def _before(self, units: Callable[[bytes], int]) -> Callable[..., None]:
        def send(request: Any, **_: object) -> None:
            body = request.body
            self.wait(units(body if isinstance(body, bytes) else str(body).encode()))

        return send

    def _answered(self, response: Any = None, **_: object) -> None:
        if response is not None and response[1].get("Error", {}).get("Code") in _REFUSALS:
            self.refused()


PATIENCE: Final = 600.0
"""Seconds for which a task goes on while DynamoDB takes nothing from it."""
PATIENT: Final = Backoff(tries=40, cap=20)
"""Waits between tries, of ten minutes in all: with jitter, 20 seconds are 10 on average."""
_PREFIXES: Final = ("FANIN_", "AWS_ENDPOINT_URL")
_NAMES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION", IGNORE_ENDPOINTS)
_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@dataclass(frozen=True)
class Service:
    """Tells the executors which stack the driver means.

    Executors do not inherit the driver's environment, so Spark sends this value to them with the functions
    that they run. Credentials are not part of it: every process uses those of its role. The keys of the local
    stack are, since they are nobody's.

    Attributes:
        environment: names and values of the variables that name the stack, sorted.
        most_writes: write units a second that each process may send; None for as many as DynamoDB takes.
    """

    environment: tuple[tuple[str, str], ...]
    most_writes: float | None = None

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> Self:
        """The stack that the environment names by its tables, or by ``FANIN_PROFILE=local``.

        Raises:
            NotConfigured: the environment names no tables, which jobs read and write directly; or there is no
                local stack, and the profile names it.
        """
        given = profiled(Settings.from_env().environment if environment is None else environment)
        known = {*_NAMES, *(_KEYS if wants_local(given) else ())}
        named = {name: value for name, value in given.items() if name.startswith(_PREFIXES) or name in known}
        named.pop(ENV_PROFILE, None)  # the file that it leads to is on this machine
        settings = Settings(named)
        try:
            _ = settings.batches_table, settings.words_table, settings.parts_table, settings.directory_table
        except NotConfigured as error:
            raise NotConfigured(
                f"{error}. For the stack of `fanin local up`, set {ENV_PROFILE}={LOCAL}; for one on AWS, set"
                " the names of its tables, which are its outputs"
            ) from None
        return cls(tuple(sorted(named.items())))

    def paced(self, most_writes: float | None) -> Self:
        """The same stack, for processes that send at most so many write units a second."""
        return replace(self, most_writes=most_writes)

    def settings(self) -> Settings:
        return Settings(dict(self.environment))

    def tracker(self) -> Tracker:
        """A tracker directly on the tables; one for each process."""
        return _connected(self)[0]

    def ledger(self) -> LedgerService:
        """The ledger under that tracker."""
        return _connected(self)[1]

    def meter(self) -> Meter:
        """Counts the rows that this process has read and written through the ledger."""
        return _connected(self)[2]

    def require(self, *services: str) -> None:
        """Check that this process reaches services of AWS, as boto3 names them.

        Raises:
            Unreachable: no network leads to some of them.
        """
        require_reachable(self.endpoints(*services))

    def endpoints(self, *services: str) -> dict[str, str]:
        """Name → URL of services of AWS, as this process calls them from now on.

        Raises:
            NotConfigured: no region is set.
        """
        os.environ.update(self.environment)
        with translated():
            clients = {name: client_factory(name)() for name in services}
            return {_SERVICES[name]: client.meta.endpoint_url for name, client in clients.items()}

    def connection(self) -> Connection:
        """The ledger's connection to DynamoDB; one for each process."""
        return _connection(self)


@cache
def _connection(service: Service) -> Connection:
    os.environ.update(service.environment)  # boto3 looks there for endpoint and region
    connection = Connection(backoff=PATIENT, patience=PATIENCE)
    pace = SharedPace(service.most_writes)
    pace.attach(connection.client)
    pace.attach(connection.once)
    return connection


@cache
def _connected(service: Service) -> tuple[Tracker, LedgerService, Meter]:
    connection = service.connection()
    services = Services(wiring.connect(service.settings(), connection), rows=limits.MAX_ROWS_DIRECT)
    meter = Meter(connection.client, connection.once)
    return Tracker(services), services.ledger, meter


# Without a VPC, EMR Serverless lets jobs reach a few services only, and SQS is not among them. A request to
# another one gets no answer, which botocore takes minutes to give up, in each task. So jobs look first, for
# four seconds, in which a lost packet is sent again twice.
_LOCAL_ADVICE: Final = (
    "Is the local stack up? `fanin local status` tells, `fanin local up` starts it. A stack that was"
    ' started again may have other addresses: run `eval "$(fanin local env)"` again, or set'
    " FANIN_PROFILE=local instead"
)
_EMR_ADVICE: Final = (
    "On EMR Serverless jobs reach such services only through a VPC: deploy with the setting"
    " pipeline_network, or name subnets that have a way there with pipeline_subnets and"
    " pipeline_security_groups (docs/how-to/spark)"
)
_PORTS: Final = {"http": 80, "https": 443}
_SERVICES: Final = {"dynamodb": "DynamoDB", "scheduler": "EventBridge Scheduler", "sqs": "SQS"}


def require_reachable(endpoints: Mapping[str, str], *, timeout: float = 4.0) -> None:
    """Connect to all of them at once, and to what a proxy's setting names instead; send nothing."""
    with ThreadPoolExecutor(len(endpoints) or 1) as pool:
        answers = pool.map(lambda url: _why_not(url, timeout), endpoints.values())
        failed = {name: why for name, why in zip(endpoints, answers, strict=True) if why}
    if failed:
        told = "; ".join(f"{name} at {endpoints[name]}: {why}" for name, why in failed.items())
        here = all(_on_this_machine(endpoints[name]) for name in failed)
        advice = _LOCAL_ADVICE if here else _EMR_ADVICE
        raise Unreachable(f"this job cannot reach {told}. Nothing was read or written. {advice}")


def _on_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _why_not(url: str, timeout: float) -> str:
    """Why nothing listens at a URL, or at its proxy; empty if something does."""
    at = urlsplit(url)
    if proxy := get_environ_proxies(url).get(at.scheme):
        at = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
    try:
        with closing(socket.create_connection((at.hostname or "", at.port or _PORTS[at.scheme]), timeout)):
            return ""
    except TimeoutError:
        return f"no answer within {timeout:g} seconds"
    except OSError as error:
        return error.strerror or str(error)
