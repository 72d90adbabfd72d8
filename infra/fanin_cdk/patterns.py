"""The patterns of one tracker: directory and routing, scatter-gather, bounded buffers, and redrives."""

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fanin_cdk.buffers import Buffers
from fanin_cdk.directory import Directory
from fanin_cdk.functions import Functions
from fanin_cdk.permissions import allow_channels, allow_redriving
from fanin_cdk.queues import RedrivenQueue
from fanin_cdk.redrives import Redrives
from fanin_cdk.scatter import ScatterGather


class Patterns:
    """Creates the patterns, and grants functions what they need to serve them.

    This class is a plain one: each pattern is a construct of its own, directly in the tracker.

    Attributes:
        directory: registrar, router, and permissions on the rules of routes.
        scatter: worker, reply queue and claims bucket of scatters.
        buffers: permissions on the queues of buffers, and their dead-letter queue.
        redrives: worker that sends failed items again, and its queue.
        environment: variables of a function that serves the patterns.
        retries: name of the function that reads a stream → queue of stream records that failed once.
        dead_ends: name → queue in which a single message raises an alarm; those of ``retries`` come on top.
        drained: name → queue that a function should keep empty.
    """

    def __init__(
        self, scope: Construct, *, functions: Functions, bus: events.EventBus, parked: sqs.Queue
    ) -> None:
        """Create the patterns.

        Args:
            scope: the tracker.
            functions: creates functions and queues.
            bus: bus on which changes are announced, and whose events are routed.
            parked: queue for events that the registrar cannot handle.
        """
        self._settings = functions.settings
        self.directory = Directory(scope, "Directory", functions=functions, bus=bus, parked=parked)
        self.scatter = ScatterGather(scope, "Scatter", functions=functions)
        self.buffers = Buffers(
            scope, "Buffers", settings=self._settings, dead_letters_function=functions.made["dead_letters"]
        )
        self.redrives = Redrives(scope, "Redrives", functions=functions, scatter=self.scatter)
        self.environment = {
            **self.directory.environment,
            **self.scatter.environment,
            **self.buffers.environment,
            **self.redrives.environment,
        }
        self.retries: dict[str, RedrivenQueue] = {"directory": self.directory.retries}
        self.dead_ends: dict[str, sqs.IQueue] = {
            "registrar": self.directory.registrar_dead_letters,
            "router": self.directory.router_dead_letters,
            "scatter": self.scatter.jobs.dead_letters,
            "replies": self.scatter.replies.dead_letters,
            "redriver": self.redrives.jobs.dead_letters,
        }
        self.drained: dict[str, sqs.IQueue] = {
            "scatter jobs": self.scatter.jobs.queue,
            "scatter replies": self.scatter.replies.queue,
            "redrive jobs": self.redrives.jobs.queue,
            "buffer dead messages": self.buffers.dead_letters,
        }

    def grant_serve(self, grantee: iam.IGrantable) -> None:
        """Allow a role to serve all calls of the API about the patterns.

        It may create routes, send to queues with the tag ``fanin:channel``, serve
        buffers, start scatters, sign URLs of claims, and redrive failed items to tagged queues.
        """
        self.directory.grant_routes(grantee)
        allow_channels(grantee, settings=self._settings)
        self.buffers.grant(grantee)
        self.scatter.grant_start(grantee)
        self.redrives.grant_hand_over(grantee)
        allow_redriving(grantee, settings=self._settings)
