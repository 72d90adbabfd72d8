"""The stack, as the tasks of a job reach it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from fanin.adapters.backoff import Backoff
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.metering import Meter
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Services
from fanin.client.local_profile import IGNORE_ENDPOINTS, LOCAL, profiled, wants_local
from fanin.client.tracker import Tracker
from fanin.domain import limits
from fanin.entry import wiring
from fanin.entry.settings import Settings
from fanin.errors import NotConfigured
from fanin.names import ENV_PROFILE
from fanin.spark.runtime import reach
from fanin.spark.runtime.pace import Pace

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
    def from_env(cls, environment: Mapping[str, str] | None = None) -> Service:
        """The stack that the environment names by its tables, or by ``FANIN_PROFILE=local``.

        Args:
            environment: by default that of this process.

        Raises:
            NotConfigured: the environment names no tables, which jobs read and write directly; or there is no
                local stack, and the profile names it.
        """
        variables = profiled(Settings.from_env().environment if environment is None else environment)
        known = {*_NAMES, *(_KEYS if wants_local(variables) else ())}
        named = {
            name: value for name, value in variables.items() if name.startswith(_PREFIXES) or name in known
        }
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

    def paced(self, most_writes: float | None) -> Service:
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
        """Check that this process reaches services of AWS.

        Args:
            services: as boto3 names them.

        Raises:
            Unreachable: no network leads to some of them.
        """
        reach.require(self.endpoints(*services))

    def endpoints(self, *services: str) -> dict[str, str]:
        """Name → URL of services of AWS, as this process calls them from now on.

        Raises:
            NotConfigured: no region is set.
        """
        self._enter()
        return reach.aws(*services)

    def _enter(self) -> None:
        os.environ.update(self.environment)  # boto3 looks there for endpoint and region

    def connection(self) -> Connection:
        """The ledger's connection to DynamoDB; one for each process."""
        return _connection(self)


@cache
def _connection(service: Service) -> Connection:
    service._enter()  # noqa: SLF001
    connection = Connection(backoff=PATIENT, patience=PATIENCE)
    pace = Pace(service.most_writes)
    pace.attach(connection.client)
    pace.attach(connection.once)
    return connection


@cache
def _connected(service: Service) -> tuple[Tracker, LedgerService, Meter]:
    connection = service.connection()
    services = Services(wiring.connect(service.settings(), connection), rows=limits.MAX_ROWS_DIRECT)
    meter = Meter(connection.client, connection.once)
    return Tracker(services), services.ledger, meter
