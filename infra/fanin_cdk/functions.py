"""Lambda functions as fanin deploys them: code from functions/, a role and a log group of their own.

Lambda's own lines, three of 360 bytes for each invocation, are left out unless they tell of trouble: at a
million calls they cost more than the log of the functions. Their figures are metrics of Lambda as well.
"""

from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack, cast

from aws_cdk import Aws, Duration, Fn
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fanin import names
from fanin_cdk.assets import FUNCTIONS
from fanin_cdk.findings import accept
from fanin_cdk.layers import RUNTIME, Layers, architecture
from fanin_cdk.queues import RedrivenQueue, dead_end, six_runs
from fanin_cdk.settings import Settings
from fanin_cdk.storage import Storage
from fanin_cdk.table_access import Access

TIMEOUT = 30
"""Default timeout of a function in seconds; API Gateway does not wait longer."""
TRIES = 10
"""How often a message in a queue of the service is received before it becomes a dead letter.

With the visibility timeouts of these queues that takes half an hour at least.
"""
ONE_PROCESSOR = 1769
"""MB of memory with which Lambda gives a function one whole processor."""


def log_group(scope: Construct, id: str, *, settings: Settings, vended: str = "") -> logs.LogGroup:
    """Create a log group with the retention and the removal policy of the settings.

    Args:
        scope: of the log group.
        id: within the scope.
        settings: of the deployment.
        vended: a name, such as ``states/fanin-audit``, if API Gateway or Step Functions writes to it. They
            add each log group without the prefix of AWS to one policy of the account, whose size is limited.
    """
    # A log group that is retained would be in the way of the next stack of the same name.
    name = f"/aws/vendedlogs/{vended}-{_stack_id()}" if vended else None
    return logs.LogGroup(
        scope,
        id,
        log_group_name=name,
        retention=settings.log_retention,
        removal_policy=settings.removal_policy,
    )


def _stack_id() -> str:
    """The last part of a stack's UUID, which no other stack has, after it was created again either."""
    return Fn.select(4, Fn.split("-", Fn.select(2, Fn.split("/", Aws.STACK_ID))))


class Function(Construct):
    """A function of fanin. Everything that its role may do must be granted, but for its own log and traces.

    Attributes:
        function: the Lambda function.
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
        reserved: int = 0,
        on_failure: sqs.IQueue | None = None,
        more_layers: Sequence[lambda_.ILayerVersion] = (),
    ) -> None:
        """Create the function.

        Args:
            scope: parent construct.
            id: its id there.
            name: name of its folder in functions/.
            description: one line that the console shows.
            settings: settings of the deployment.
            layers: fanin and the packages that it needs.
            environment: variables, besides those that all functions have.
            timeout: seconds that one invocation may take.
            memory: MB; Lambda assigns a share of the processor in proportion.
            reserved: concurrency kept for the function, which is also its limit; 0 for none.
            on_failure: queue for the events of asynchronous invocations that failed for good; None drops
                them.
            more_layers: besides those of all functions.
        """
        super().__init__(scope, id)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        logs_here = log_group(self, "Logs", settings=settings)
        logs_here.grant_write(role)
        accept(
            role,
            "IAM5[Resource::*]",
            "xray:PutTraceSegments, xray:PutTelemetryRecords, dynamodb:ListStreams,"
            " lambda:ListEventSourceMappings, cloudwatch:GetMetricData, states:SendTask* and"
            " lambda:SendDurableExecutionCallback* do not take resources that are known, and queues of users"
            " are known by their tags fanin:channel and fanin:tracked only",
        )
        self.function = lambda_.Function(
            self,
            "Function",
            description=description,
            code=lambda_.Code.from_asset(str(FUNCTIONS / name), exclude=["__pycache__"]),
            handler="handler.handler",
            runtime=RUNTIME,
            architecture=architecture(settings),
            layers=[*layers.fitting(self), *more_layers],
            role=role,
            log_group=logs_here,
            logging_format=lambda_.LoggingFormat.JSON,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            # Metrics are lines of the log without a level, which counts as INFO.
            application_log_level_v2=lambda_.ApplicationLogLevel[
                "DEBUG" if settings.log_level == "DEBUG" else "INFO"
            ],
            tracing=lambda_.Tracing.ACTIVE if settings.tracing == "xray" else lambda_.Tracing.DISABLED,
            timeout=Duration.seconds(timeout),
            memory_size=memory,
            reserved_concurrent_executions=reserved or None,
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

    def allow_chain(self) -> None:
        """Let the function put messages on the queue that feeds it; Lambda stops such a chain after 16.

        Only for a function each of whose messages leaves less to do than the one before, so that the chain
        ends by itself.
        """
        cast("lambda_.CfnFunction", self.function.node.default_child).recursive_loop = "Allow"


class Options(TypedDict, total=False):
    """What differs between functions; see ``Function``."""

    timeout: int
    memory: int
    reserved: int
    on_failure: sqs.IQueue | None
    more_layers: Sequence[lambda_.ILayerVersion]


class Functions(Construct):
    """Creates the functions of one tracker, and the queues that feed them.

    Args:
        scope: parent construct.
        id: its id there.
        settings: settings of the deployment.
        layers: fanin and the packages that it needs.
        storage: the tables.

    Attributes:
        settings: as given.
        storage: as given.
        made: all functions created so far, by the name of their folder.
    """

    def __init__(
        self, scope: Construct, id: str, *, settings: Settings, layers: Layers, storage: Storage
    ) -> None:
        super().__init__(scope, id)
        self.settings, self._layers, self.storage = settings, layers, storage
        self.made: dict[str, Function] = {}

    def make(
        self,
        name: str,
        description: str,
        access: Access,
        *,
        environment: Mapping[str, str] | None = None,
        **options: Unpack[Options],
    ) -> Function:
        """Create a function that knows the names of the tables, and whose role has exactly the given access.

        Args:
            name: name of its folder in functions/.
            description: what it does, in one line.
            access: what its role may do with the tables.
            environment: variables, besides the names of the tables.
            options: of the function.
        """
        function = Function(
            self,
            "".join(word.title() for word in name.split("_")),
            name=name,
            description=f"fanin: {description}",
            settings=self.settings,
            layers=self._layers,
            environment={**self.storage.environment, **(environment or {})},
            **options,
        )
        self.storage.grant(function.function, access)
        self.made[name] = function
        return function

    def queue(
        self, scope: Construct, id: str, *, timeout: int = TIMEOUT, tries: int = TRIES
    ) -> RedrivenQueue:
        """Create a queue that feeds a function.

        Args:
            scope: parent construct.
            id: its id there.
            timeout: of the function.
            tries: how often a message is received before it becomes a dead letter.
        """
        return RedrivenQueue(
            scope,
            id,
            visibility_timeout=six_runs(timeout),
            max_receive_count=tries,
            enforce_ssl=not self.settings.local,
        )

    def dead_end(self, scope: Construct, id: str) -> sqs.Queue:
        """Create a queue for what failed for good; see ``queues.dead_end``."""
        return dead_end(scope, id, enforce_ssl=not self.settings.local)
