"""The patterns of one tracker: the directory, scatter-gather and buffers, composed on the ledger's parts."""

from __future__ import annotations

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.buffers import Buffers
from infra.directory import Directory
from infra.functions import Functions
from infra.permissions import allow, allow_channels
from infra.queues import RedrivenQueue
from infra.scatter import ScatterGather
from infra.settings import Settings
from infra.storage import Storage


class Patterns:
    """Makes the patterns, and says what the functions of the ledger need for them.

    It is no construct of its own: each pattern is one, in the scope of the tracker.

    Attributes:
        directory: registrar, router, and the rules of routes.
        scatter: worker, replies and claims of scatters.
        buffers: where buffers get their queues.
        environment: what a function needs to serve the patterns.
        retries: queues of stream records that failed once, by the function that reads the stream.
        dead_ends: queues in which a single message is one too many, besides those of the retries.
        drained: queues that a function should keep empty.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        settings: Settings,
        storage: Storage,
        functions: Functions,
        bus: events.EventBus,
        parked: sqs.Queue,
        tries: int,
    ) -> None:
        """Make them.

        Args:
            scope: the tracker.
            settings: the deployment's settings.
            storage: the tables.
            functions: makes functions.
            bus: where changes are told, and events come from.
            parked: keeps events that the registrar cannot handle.
            tries: how often a message is tried.
        """
        self._settings = settings
        self.directory = Directory(
            scope,
            "Directory",
            settings=settings,
            storage=storage,
            bus=bus,
            parked=parked,
            make=functions.make,
            tries=tries,
        )
        self.scatter = ScatterGather(scope, "Scatter", settings=settings, make=functions.make, tries=tries)
        self.buffers = Buffers(scope, "Buffers", settings=settings)
        self.environment = {
            **self.directory.environment,
            **self.scatter.environment,
            **self.buffers.environment,
        }
        self.retries: dict[str, RedrivenQueue] = {"directory": self.directory.retries}
        self.dead_ends: dict[str, sqs.IQueue] = {
            "registrar": self.directory.registrar_dead_letters,
            "router": self.directory.router_dead_letters,
            "scatter": self.scatter.jobs.dead_letters,
            "replies": self.scatter.replies.dead_letters,
        }
        self.drained: dict[str, sqs.IQueue] = {
            "scatter jobs": self.scatter.jobs.queue,
            "scatter replies": self.scatter.replies.queue,
        }

    def grant_serve(self, grantee: iam.IGrantable) -> None:
        """Let a role do everything with the patterns that the API offers."""
        self.directory.grant_routes(grantee)
        allow(grantee, ["events:TestEventPattern"], "*")
        allow_channels(grantee, settings=self._settings)
        self.buffers.grant(grantee)
        self.scatter.grant_start(grantee)
