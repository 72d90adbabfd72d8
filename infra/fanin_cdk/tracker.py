"""The whole service as one construct."""

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fanin import names
from fanin.domain.access import AccessGroup
from fanin_cdk.ack_queue import ack_queue
from fanin_cdk.alarms import Alarms
from fanin_cdk.api import Api
from fanin_cdk.consumers import equip
from fanin_cdk.dashboard import Dashboard
from fanin_cdk.events import Bus
from fanin_cdk.functions import ONE_PROCESSOR, Function, Functions
from fanin_cdk.keys import allow_key, encrypt
from fanin_cdk.layers import Layers
from fanin_cdk.patterns import Patterns
from fanin_cdk.permissions import (
    allow_channels,
    allow_dead_letters,
    allow_inspection,
    allow_redriving,
    allow_sending,
)
from fanin_cdk.queues import RedrivenQueue
from fanin_cdk.reaper import reaper_at_a_rate
from fanin_cdk.removal import Removal
from fanin_cdk.schedules import Deadlines
from fanin_cdk.settings import Settings
from fanin_cdk.storage import Storage
from fanin_cdk.streams import stream_readers
from fanin_cdk.table_access import ACK, READ, SERVE, WAKE
from fanin_cdk.targets import Targets
from fanin_cdk.tracked_queue import TrackedQueue
from fanin_cdk.watched import Watched


class FaninTracker(Construct):
    """The whole service: tables, functions, API, queues, event bus, schedules, alarms and dashboard.

    Example:
        In a stack of your own, with a function that opens batches and one that consumes their messages::

            tracker = FaninTracker(self, "Fanin", settings=Settings(prefix="shop"))
            tracker.grant_producer(importer)
            tracker.equip(importer)
            tracker.work.queue.grant_send_messages(importer)
            tracker.work.consume(consumer)
            Rule(
                self, "Done",
                event_bus=tracker.bus,
                event_pattern=EventPattern(source=["fanin"], detail_type=["Batch Completed"]),
                targets=[LambdaFunction(on_completion)],
            )

    Args:
        scope: parent construct.
        id: its id there.
        settings: settings of the deployment; None takes the defaults.

    Attributes:
        settings: settings of the deployment.
        storage: the tables.
        layers: fanin and the packages that it needs, also for functions of your own.
        bus: event bus on which the ends of batches are announced.
        work: a queue for work; a message in its dead-letter queue fails its item.
        acks: queue for acknowledgements that need no answer.
        parked: queue for messages that neither a consumer nor the function for dead letters could handle, and
            for dead letters of buffers.
        api: the service over HTTPS.
        directory: registrar, router, and permissions on the rules of routes.
        targets: queue and function that call back at the end of batches, and the secret of webhooks.
        scatter: worker, reply queue and claims bucket of scatters.
        buffers: permissions on the queues of buffers, and their dead-letter queue.
        redrives: worker that sends failed items again, and its queue.
        deadlines: group and role of the schedules for deadlines.
        timer_dead_letters: queue for calls of the timer that failed.
        reaper_dead_letters: queue for invocations of the reaper that failed for good.
        retries: name of the function that reads a stream → queue of stream records that failed once.
        functions: all functions, by the name of their folder.
        removal: deletes what is in the way of deleting the stack, and with the setting ``removal=destroy``
            what it has stored; None on an emulator.
        environment: variables with which ``Tracker.from_env()`` works directly on the tables.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings | None = None) -> None:
        super().__init__(scope, id)
        self.settings = settings or Settings()
        self.storage = Storage(self, "Storage", settings=self.settings)
        self.layers = Layers(self, "Layers", settings=self.settings)
        self.bus = Bus(self, "Bus", settings=self.settings).bus
        self._functions = Functions(
            self, "Functions", settings=self.settings, layers=self.layers, storage=self.storage
        )
        self.functions = self._functions.made
        self.deadlines, self.timer_dead_letters = self._deadlines()
        self.acks, self.work, self.parked = self._queues()
        self.targets = Targets(self, "Targets", functions=self._functions)
        self.retries = stream_readers(self, functions=self._functions, bus=self.bus, deadlines=self.deadlines)
        self._patterns = Patterns(self, functions=self._functions, bus=self.bus, parked=self.parked)
        self.directory = self._patterns.directory
        self.scatter = self._patterns.scatter
        self.buffers = self._patterns.buffers
        self.redrives = self._patterns.redrives
        self.retries |= self._patterns.retries
        for name in ("acks", "dead_letters", "scatter"):
            self._keep_messages(self.functions[name])
        self.scatter.grant_forget(self.functions["notifier"].function)
        self.functions["notifier"].function.add_environment(*self._bucket)
        for name in ("timer", "scatter"):
            self.scatter.grant_postpone(self.functions[name], self.deadlines)
        self.api = self._api()
        self.targets.feed_by(self.functions["notifier"])
        self.reaper_dead_letters = reaper_at_a_rate(
            self, functions=self._functions, bus=self.bus, deadlines=self.deadlines, scatter=self.scatter
        )
        self.environment = {
            **self.storage.environment,
            **self.deadlines.environment,
            **self.settings.environment,
            **self._patterns.environment,
            **self.targets.environment,
            names.ENV_BUS: self.bus.event_bus_arn,
            names.ENV_ACK_QUEUE_URL: self.acks.queue.queue_url,
        }
        # An emulator is thrown away as a whole.
        self.removal = None if self.settings.local else self._removal()
        self._watch()
        encrypt(self, self.settings.kms_key_arn)

    def equip(self, function: lambda_.IFunction) -> None:
        """Give a function of yours what ``import fanin`` and ``Tracker.from_env()`` need; it may do nothing.

        It gets the layers that fit its Python and its processor, in its own stack, and the variables of
        ``environment``. A container image and a function that does not run Python get the variables alone: a
        container image brings fanin with it, and the other function gets the URL of the API besides. An
        imported function is left as it is.

        Raises:
            UnfitFunction: the layers do not fit it, or it belongs to another tracker already.
        """
        equip(function, self)

    @property
    def dead_letters(self) -> Function:
        """The function that fails the items of dead-lettered messages; ``TrackedQueue`` takes it."""
        return self.functions["dead_letters"]

    def grant_read(self, grantee: iam.IGrantable) -> None:
        """Allow a role to look at everything over the API, and in the console if the API serves it."""
        self.api.grant_groups(grantee, AccessGroup.READ)

    def grant_operator(self, grantee: iam.IGrantable) -> None:
        """Allow a role to decide about batches over the API: cancel, release, redrive, repair, tell again.

        Operators also look at what they decide about: combine it with ``grant_read``.
        """
        self.api.grant_groups(grantee, AccessGroup.OPERATE)

    def grant_administrator(self, grantee: iam.IGrantable) -> None:
        """Allow a role to remove batches over the API, and to change routes and buffers."""
        self.api.grant_groups(grantee, AccessGroup.ADMINISTER)

    def grant_producer(self, grantee: iam.IGrantable, via: str = "tables") -> None:
        """Allow a role to open batches, scatters and frames, to add items, and to put work and events in.

        Args:
            grantee: the role, or a function or another construct with a role.
            via: ``https``: the calls of the API for producers, and no others; or ``tables``, the default,
                which the library needs with ``environment``: these calls, and everything that the service
                itself may do with batches and scatters, since IAM cannot tell an opening from any other
                write of the tables. It may read and write the tables, set deadlines, send jobs to the worker
                of scatters and to that of redrives, read and write claims, and have targets told again. Like
                the API, it may look up the queues with the tag ``fanin:channel`` or ``fanin:tracked`` and
                send to them.

        Raises:
            ValueError: ``via`` is something else.
        """
        _check_via("grant_producer", via, "https", "tables")
        self.api.grant_groups(grantee, AccessGroup.PRODUCE)
        if via == "https":
            return
        self.storage.grant(grantee, SERVE)
        self.deadlines.grant_set(grantee)
        self.scatter.grant_start(grantee)
        self.redrives.grant_hand_over(grantee)
        self.targets.grant_redeliver(grantee)
        allow_channels(grantee, settings=self.settings)
        allow_redriving(grantee, settings=self.settings)
        allow_key(grantee, self.settings.kms_key_arn)

    def grant_consumer(self, grantee: iam.IGrantable, via: str = "tables") -> None:
        """Allow a role to acknowledge, fail, claim and reply.

        Args:
            grantee: the role, or a function or another construct with a role.
            via: the way to the ledger. ``queue`` is the narrowest: send to the ack queue and the reply queue,
                and nothing else, for ``via="queue"`` in the library. ``https``: the calls of the API for
                consumers, and both queues. ``tables``, the default, which the library needs with
                ``environment``: all of that, and on the tables what an acknowledgement writes: the progress
                of batches, the bits, and notes of failures with their messages. It may read all parts of
                batches, but write only attributes of notes.

        Raises:
            ValueError: ``via`` is something else.
        """
        _check_via("grant_consumer", via, "https", "queue", "tables")
        self.scatter.grant_reply(grantee)
        allow_sending(grantee, self.acks.queue.queue_arn)
        allow_key(grantee, self.settings.kms_key_arn)
        if via == "queue":
            return
        self.api.grant_groups(grantee, AccessGroup.CONSUME)
        if via == "tables":
            self.storage.grant(grantee, ACK)
            self.scatter.grant_keep(grantee)

    @property
    def _bucket(self) -> tuple[str, str]:
        """The variable that names the bucket, and its name."""
        return names.ENV_CLAIMS_BUCKET, self.scatter.claims.bucket_name

    def _keep_messages(self, function: Function) -> None:
        """Let a function keep messages of failed items that are too large for a row."""
        function.function.add_environment(*self._bucket)
        self.scatter.grant_keep(function.function)

    def _deadlines(self) -> tuple[Deadlines, sqs.Queue]:
        missed = self._functions.dead_end(self, "TimerDeadLetters")
        timer = self._functions.make("timer", "ends a batch at its deadline", WAKE, on_failure=missed)
        deadlines = Deadlines(self, "Deadlines", settings=self.settings, timer=timer, dead_letters=missed)
        return deadlines, missed

    def _queues(self) -> tuple[RedrivenQueue, TrackedQueue, sqs.Queue]:
        acks = ack_queue(self, functions=self._functions)
        parked = self._functions.dead_end(self, "Parked")
        dead_letters = self._functions.make(
            "dead_letters",
            "fails the items of dead-lettered messages",
            ACK,
            environment={names.ENV_RETRY_QUEUE_URL: parked.queue_url},
        )
        allow_sending(dead_letters.function, parked.queue_arn)
        allow_dead_letters(dead_letters.function, settings=self.settings)
        work = TrackedQueue(
            self, "WorkQueue", tracker=self, dead_letters_max_concurrency=self.settings.worker_max_concurrency
        )
        return acks, work, parked

    def _api(self) -> Api:
        function = self._functions.make(
            "api",
            "serves the HTTP API",
            SERVE,
            environment=self._serving,
            memory=ONE_PROCESSOR,
            reserved=self.settings.api_reserved_concurrency,
        )
        self._grant_serve(function)
        api = Api(self, "Api", settings=self.settings, function=function)
        if self.settings.console:
            api.serve_console(self._console(), write=self.settings.console_write)
        return api

    @property
    def _serving(self) -> dict[str, str]:
        """The variables of functions that serve all calls."""
        scopes = {names.ENV_JWT_SCOPE_PREFIX: self.settings.jwt_scope_prefix}
        return {
            **self.deadlines.environment,
            **self._patterns.environment,
            **(scopes if self.settings.auth == "jwt" else {}),
        }

    def _grant_serve(self, function: Function) -> None:
        """Let a function with access to the tables serve all calls."""
        self.deadlines.grant_set(function.function)
        self.deadlines.grant_clear(function.function)
        self._patterns.grant_serve(function.function)
        allow_inspection(function.function, settings=self.settings)
        self.targets.feed_by(function)

    def _console(self) -> Function:
        """The console: it may only read, unless the settings give it buttons."""
        write = self.settings.console_write
        function = self._functions.make(
            "console",
            "serves the console",
            SERVE if write else READ,
            environment={
                **self._serving,
                names.ENV_CONSOLE_WRITE: str(write).lower(),
                names.ENV_CONSOLE_ORIGINS: ",".join(self.settings.console_origin_list),
            },
            memory=ONE_PROCESSOR,
            more_layers=[layer for layer in (self.layers.console,) if layer],
        )
        if write:
            self._grant_serve(function)
        else:
            self.scatter.grant_read(function.function)
            allow_inspection(function.function, settings=self.settings)
        return function

    def _removal(self) -> Removal:
        return Removal(
            self,
            "Removal",
            settings=self.settings,
            layers=self.layers,
            storage=self.storage,
            bus=self.bus,
            patterns=self._patterns,
            functions=self.functions.values(),
        )

    def _watch(self) -> None:
        dead_ends = {
            "acks": self.acks.dead_letters,
            "targets": self.targets.jobs.dead_letters,
            "parked": self.parked,
            "timer": self.timer_dead_letters,
            "reaper": self.reaper_dead_letters,
            **self._patterns.dead_ends,
            **{name: retries.dead_letters for name, retries in self.retries.items()},
        }
        postponing = {
            "acks": self.acks.queue,
            "dead messages": self.work.dead_letters,
            "targets": self.targets.jobs.queue,
        }
        watched = Watched(
            settings=self.settings,
            api=self.api,
            functions=self.functions,
            tables=self.storage.tables,
            work={"work": self.work.queue},
            drained={**postponing, **self._patterns.drained},
            postponing=postponing,
            dead_ends=dead_ends,
        )
        if self.settings.alarms:
            Alarms(self, "Alarms", watched)
        if self.settings.dashboard:
            Dashboard(self, "Dashboard", watched)


def _check_via(grant: str, via: str, *known: str) -> None:
    if via not in known:
        raise ValueError(f"{grant}: via is {via!r}; it must be one of {', '.join(known)}")
