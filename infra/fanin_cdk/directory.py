"""The directory and content-based routing: registrar, router, and the reader of their table's stream."""

from aws_cdk import Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fanin import names
from fanin_cdk.events import DIRECTORY_CHANGED, feed_from_stream
from fanin_cdk.findings import accept
from fanin_cdk.functions import Function, Functions
from fanin_cdk.permissions import allow, allow_channels, allow_sending
from fanin_cdk.queues import RedrivenQueue
from fanin_cdk.schedules import Rate
from fanin_cdk.table_access import FOLLOW, REGISTER, ROUTE

RULES = ("events:DeleteRule", "events:PutRule", "events:RemoveTargets")


class Directory(Construct):
    """The functions that keep the directory up to date, announce its changes, and route events.

    Attributes:
        retries: queue of stream records that failed once.
        registrar_dead_letters: queue of invocations of the registrar that failed for good.
        router_dead_letters: queue of events that the router could not handle.
        unrouted: queue of events that no registration got; None unless the setting ``unrouted`` is ``keep``.
        environment: variables of a function that creates routes.
    """

    def __init__(
        self, scope: Construct, id: str, *, functions: Functions, bus: events.EventBus, parked: sqs.Queue
    ) -> None:
        """Create the functions, their queues and their rules.

        Args:
            scope: parent construct.
            id: its id there.
            functions: creates functions and queues.
            bus: bus on which changes are announced, and whose events are routed.
            parked: queue for events that the registrar cannot handle.
        """
        super().__init__(scope, id)
        self._functions, self._settings, self._bus = functions, functions.settings, bus
        self.unrouted = functions.dead_end(self, "Unrouted") if self._settings.unrouted == "keep" else None
        self.router_dead_letters, router = self._router()
        self.environment = {
            names.ENV_BUS: bus.event_bus_arn,
            names.ENV_ROUTER_ARN: router.function.function_arn,
        }
        self.retries = self._stream()
        self.registrar_dead_letters = self._registrar(parked)

    def grant_routes(self, grantee: iam.IGrantable) -> None:
        """Allow a role to put events on the bus, and to create and delete rules for routes.

        The name of such a rule begins with the prefix of routes, and its only target may be the router.
        """
        allow(grantee, ["events:PutEvents"], self._bus.event_bus_arn)
        allow(grantee, RULES, self._rules())
        if self._settings.local:  # the emulator checks targets against the bus, without the condition
            allow(grantee, ["events:PutTargets", "events:RemoveTargets"], self._bus.event_bus_arn)
        else:
            # The key has a value for each target: all must be the router, and there must be one.
            router = {
                "ForAllValues:ArnEquals": {"events:TargetArn": self.environment[names.ENV_ROUTER_ARN]},
                "Null": {"events:TargetArn": "false"},
            }
            allow(grantee, ["events:PutTargets"], self._rules(), router)
        if isinstance(role := grantee.grant_principal, iam.Role):
            where = f"arn:<AWS::Partition>:events:<AWS::Region>:<AWS::AccountId>:{self._rule}"
            accept(role, f"IAM5[Resource::{where}]", "the rules have the names of routes, which users choose")

    @property
    def _rule(self) -> str:
        return f"rule/{self._settings.prefix}/{names.ROUTE_RULE}*"

    def _rules(self) -> str:
        return Stack.of(self).format_arn(service="events", resource=self._rule)

    def _router(self) -> tuple[sqs.Queue, Function]:
        dead_letters = self._functions.dead_end(self, "RouterDeadLetters")
        kept = {names.ENV_UNROUTED_QUEUE_URL: self.unrouted.queue_url} if self.unrouted else {}
        router = self._functions.make(
            "router",
            "sends events to the registrations that their routes name",
            ROUTE,
            environment={names.ENV_BUS: self._bus.event_bus_arn, **kept},
            on_failure=dead_letters,
        )
        if self.unrouted:
            allow_sending(router.function, self.unrouted.queue_arn)
        allow_channels(router.function, settings=self._settings, look=False)
        router.function.add_permission(
            "Routes", principal=iam.ServicePrincipal("events.amazonaws.com"), source_arn=self._rules()
        )
        if self._settings.unrouted != "ignore":
            events.Rule(
                self,
                "Everything",
                event_bus=self._bus,
                event_pattern=events.EventPattern(
                    source=events.Match.anything_but(names.EVENT_SOURCE),
                    detail_type=events.Match.anything_but(*names.INSTANCE_EVENTS),
                ),
                targets=[targets.LambdaFunction(router.function, dead_letter_queue=dead_letters)],
            )
        return dead_letters, router

    def _stream(self) -> RedrivenQueue:
        retries = self._functions.queue(self, "Retries")
        function = self._functions.make(
            "directory",
            "announces registrations on the bus, and creates the rules of routes",
            FOLLOW,
            environment={**self.environment, names.ENV_RETRY_QUEUE_URL: retries.queue.queue_url},
        )
        self.grant_routes(function.function)
        feed_from_stream(function, self._functions.storage.directory, [DIRECTORY_CHANGED], retries)
        return retries

    def _registrar(self, parked: sqs.Queue) -> sqs.Queue:
        dead_letters = self._functions.dead_end(self, "RegistrarDeadLetters")
        registrar = self._functions.make(
            "registrar",
            "removes expired registrations, and registers instances that announce themselves",
            REGISTER,
            environment={names.ENV_RETRY_QUEUE_URL: parked.queue_url},
            timeout=300,
            on_failure=dead_letters,
        )
        allow_sending(registrar.function, parked.queue_arn)
        allow_channels(registrar.function, settings=self._settings, send=False)
        minutes = self._settings.registrar_rate_minutes
        Rate(self, "Rate", function=registrar, minutes=minutes, dead_letters=dead_letters)
        events.Rule(
            self,
            "Instances",
            event_bus=self._bus,
            event_pattern=events.EventPattern(detail_type=list(names.INSTANCE_EVENTS)),
            targets=[targets.LambdaFunction(registrar.function, dead_letter_queue=dead_letters)],
        )
        return dead_letters
