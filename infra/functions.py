"""One Lambda function as fanin has them: a folder of functions/, a role of its own, logs that end."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fanin import names
from infra.findings import accept
from infra.layers import ROOT, RUNTIME, Layers, architecture
from infra.settings import RETENTION, Settings
from infra.storage import Access, Storage

TIMEOUT = 30
"""Seconds that an invocation may take, of most functions; API Gateway waits no longer than that."""


def log_group(scope: Construct, id: str, *, settings: Settings) -> logs.LogGroup:
    """Make a log group that keeps its events for as long as the settings say."""
    return logs.LogGroup(
        scope,
        id,
        retention=logs.RetentionDays[RETENTION[settings.log_retention_days]],
        removal_policy=settings.removal_policy,
    )


class Function(Construct):
    """A function of fanin. Its role can write its own log and traces; everything else is granted to it.

    Attributes:
        function: the Lambda function, to be granted and invoked.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        description: str,
        settings: Settings,
        layers: Layers,
        environment: Mapping[str, str],
        timeout: int = TIMEOUT,
        memory: int = 512,
        on_failure: sqs.IQueue | None = None,
    ) -> None:
        """Make the function.

        Args:
            scope: where it belongs.
            id: its name there.
            name: name of its folder in functions/.
            description: one line for people who find it in the console.
            settings: the deployment's settings.
            layers: fanin and what it runs on.
            environment: what it reads, besides what all functions read.
            timeout: seconds that one invocation may take.
            memory: MB; the processor's share follows from it.
            on_failure: where the event of an asynchronous invocation goes that failed for good.
        """
        super().__init__(scope, id)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        logs_here = log_group(self, "Logs", settings=settings)
        logs_here.grant_write(role)
        accept(
            role,
            "IAM5[Resource::*]",
            "xray:PutTraceSegments, xray:PutTelemetryRecords, dynamodb:ListStreams, events:TestEventPattern"
            " know no resources, and the queues of others are known by their tag fanin:channel alone",
        )
        self.function = lambda_.Function(
            self,
            "Function",
            description=description,
            code=lambda_.Code.from_asset(str(ROOT / "functions" / name), exclude=["__pycache__"]),
            handler="handler.handler",
            runtime=RUNTIME,
            architecture=architecture(settings),
            layers=layers.both,
            role=role,
            log_group=logs_here,
            tracing=lambda_.Tracing.ACTIVE,
            timeout=Duration.seconds(timeout),
            memory_size=memory,
            environment={
                "POWERTOOLS_SERVICE_NAME": settings.prefix,
                "POWERTOOLS_METRICS_NAMESPACE": names.METRICS_NAMESPACE,
                "POWERTOOLS_LOG_LEVEL": settings.log_level,
                **settings.environment,
                **environment,
            },
        )
        if on_failure:
            self.function.configure_async_invoke(
                on_failure=destinations.SqsDestination(on_failure), retry_attempts=2
            )


class Functions(Construct):
    """Makes the functions of one tracker, and keeps them by name.

    Attributes:
        made: all functions so far, by the name of their folder.
    """

    def __init__(
        self, scope: Construct, id: str, *, settings: Settings, layers: Layers, storage: Storage
    ) -> None:
        super().__init__(scope, id)
        self._settings, self._layers, self._storage = settings, layers, storage
        self.made: dict[str, Function] = {}

    def make(
        self,
        name: str,
        description: str,
        access: Access,
        *,
        environment: Mapping[str, str] | None = None,
        timeout: int = TIMEOUT,
        memory: int = 512,
        on_failure: sqs.IQueue | None = None,
    ) -> Function:
        """Make a function that knows the tables, with a role that may do no more with them than it says.

        Args:
            name: name of its folder in functions/.
            description: what it does.
            access: what it may do with the tables.
            environment: what it reads besides the names of the tables.
            timeout: seconds that one invocation may take.
            memory: MB.
            on_failure: where the event of an asynchronous invocation goes that failed for good.
        """
        function = Function(
            self,
            "".join(word.title() for word in name.split("_")),
            name=name,
            description=f"fanin: {description}",
            settings=self._settings,
            layers=self._layers,
            environment={**self._storage.environment, **(environment or {})},
            timeout=timeout,
            memory=memory,
            on_failure=on_failure,
        )
        self._storage.grant(function.function, access)
        self.made[name] = function
        return function
