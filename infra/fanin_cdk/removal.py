"""What CloudFormation cannot: delete what is in the way of deleting a stack, and lift limits of tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from aws_cdk import CustomResource, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from fanin import names
from fanin_cdk.findings import accept, accept_below
from fanin_cdk.functions import Function
from fanin_cdk.layers import Layers
from fanin_cdk.patterns import Patterns
from fanin_cdk.permissions import policy_beside
from fanin_cdk.settings import Settings
from fanin_cdk.storage import Storage

TIMEOUT = 900
"""Seconds of the function, the most that Lambda offers: about a million objects."""


class Removal(Construct):
    """Deletes the rules of routes with the stack of a tracker, since a bus with rules cannot be deleted.

    With ``removal=destroy`` it also empties the bucket, and deletes the queues of buffers. A function does it
    when CloudFormation deletes the stack, after the functions of the tracker are gone. When the stack is
    updated or rolled back it deletes nothing, but lifts the limits of the tables that the settings no longer
    have.

    Args:
        scope: parent construct, in the stack of the tracker.
        id: its id there.
        settings: settings of the deployment.
        layers: of the tracker.
        storage: its tables.
        bus: its bus.
        patterns: its buffers and scatters.
        functions: all of its functions.

    Attributes:
        function: the function.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        layers: Layers,
        storage: Storage,
        bus: events.EventBus,
        patterns: Patterns,
        functions: Iterable[Function],
    ) -> None:
        super().__init__(scope, id)
        self.function = Function(
            self,
            "Function",
            name="removal",
            description="fanin: does for the stack what CloudFormation cannot",
            settings=settings,
            layers=layers,
            environment={},
            timeout=TIMEOUT,
            memory=1024,
        ).function
        stack, prefix = Stack.of(self), patterns.buffers.environment[names.ENV_BUFFER_PREFIX]
        self._destroys = settings.removal == "destroy"
        rules = f"rule/{settings.prefix}/{names.ROUTE_RULE}*"
        statements = [
            iam.PolicyStatement(actions=["events:ListRules"], resources=["*"]),
            iam.PolicyStatement(
                actions=["events:DeleteRule", "events:RemoveTargets"],
                resources=[stack.format_arn(service="events", resource=rules)],
            ),
        ]
        tables = storage.tables.values()
        statements += [
            iam.PolicyStatement(
                actions=["dynamodb:DescribeTable", "dynamodb:UpdateTable"],
                resources=[table.table_arn for table in tables],
            )
        ]
        limits = {
            "MaxWriteRequestUnits": settings.table_max_writes,
            "MaxReadRequestUnits": settings.table_max_reads,
        }
        properties: dict[str, str | list[str]] = {
            "Bus": bus.event_bus_name,
            "Tables": [table.table_name for table in tables],
            # When a limit goes back to 0 this changes, so the function is called.
            "Unlimited": [name for name, most in limits.items() if not most],
        }
        where = {f"events:<AWS::Region>:<AWS::AccountId>:{rules}": "routes have names that users choose"}
        if self._destroys:
            statements += [
                iam.PolicyStatement(actions=["sqs:ListQueues"], resources=["*"]),
                iam.PolicyStatement(
                    actions=["sqs:DeleteQueue", "sqs:GetQueueAttributes"],
                    resources=[stack.format_arn(service="sqs", resource=f"{prefix}*")],
                ),
            ]
            properties |= {"QueuePrefix": prefix, "DeadLetters": patterns.buffers.dead_letters.queue_arn}
            where[f"sqs:<AWS::Region>:<AWS::AccountId>:{prefix}*"] = "buffers have names that users choose"
        cleaned = self.clean(self, [patterns.scatter.claims], properties, statements)
        # What is deleted first cannot make new queues, rules or objects.
        for function in functions:
            function.function.node.add_dependency(cleaned)
        for one, reason in where.items():
            accept(self, f"IAM5[Resource::arn:<AWS::Partition>:{one}]", reason)
        accept(self, "IAM5[Resource::*]", "listing takes no resource")

    def clean(
        self,
        scope: Construct,
        buckets: Sequence[s3.Bucket],
        properties: Mapping[str, str | list[str]] | None = None,
        statements: Sequence[iam.PolicyStatement] = (),
    ) -> CustomResource:
        """Clean up when the stack of a construct is deleted.

        Args:
            scope: a construct of that stack; the buckets are in it.
            buckets: buckets to empty, if data is to be destroyed.
            properties: what to delete, to stop or to lift in any case.
            statements: permissions for that.

        Returns:
            What does it. What depends on it is deleted before.
        """
        buckets = buckets if self._destroys else []
        policy = policy_beside(
            scope,
            "Clean",
            cast("iam.IRole", self.function.role),
            [
                iam.PolicyStatement(
                    actions=["cloudformation:DescribeStacks"], resources=[Stack.of(scope).stack_id]
                ),
                *(
                    iam.PolicyStatement(actions=[action], resources=[resource])
                    for bucket in buckets
                    for action, resource in (
                        ("s3:ListBucket", bucket.bucket_arn),
                        ("s3:DeleteObject", bucket.arn_for_objects("*")),
                    )
                ),
                *statements,
            ],
        )
        for bucket in buckets:
            accept_below(policy, bucket, bucket.bucket_arn, "/*", "the bucket is deleted with its objects")
        cleaned = CustomResource(
            scope,
            "Leftovers",
            resource_type="Custom::FaninLeftovers",
            service_token=self.function.function_arn,
            properties={"Buckets": [bucket.bucket_name for bucket in buckets], **(properties or {})},
        )
        # The permissions, and the log, must be there for as long as the function may be called.
        cleaned.node.add_dependency(policy, self.function)
        return cleaned
