"""Time: one-time schedules for the deadlines of batches, and the rate at which the reaper runs."""

from __future__ import annotations

from typing import cast

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fanin import names
from infra.findings import accept
from infra.functions import Function
from infra.permissions import allow
from infra.settings import Settings

SCHEDULER = "scheduler.amazonaws.com"


class Deadlines(Construct):
    """Where the API makes one schedule for each batch with a deadline, which calls the timer.

    Attributes:
        group: the group of these schedules and of no others.
        role: what the schedules run as; it may invoke the timer and report failures.
        environment: what a function needs to make and delete schedules.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        timer: Function,
        dead_letters: sqs.Queue,
    ) -> None:
        super().__init__(scope, id)
        self.group = scheduler.ScheduleGroup(
            self, "Group", schedule_group_name=settings.prefix, removal_policy=RemovalPolicy.DESTROY
        )
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                SCHEDULER,
                conditions={
                    "StringEquals": {
                        "aws:SourceAccount": Stack.of(self).account,
                        "aws:SourceArn": self.group.schedule_group_arn,
                    }
                },
            ),
        )
        # By a name of its own the timer can be told its own ARN, which it needs to be called again.
        name = f"{settings.prefix}-timer"
        cast("lambda_.CfnFunction", timer.function.node.default_child).function_name = name
        timer_arn = Stack.of(self).format_arn(
            service="lambda",
            resource="function",
            resource_name=name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        for action, arn in (
            ("lambda:InvokeFunction", timer.function.function_arn),
            ("sqs:SendMessage", dead_letters.queue_arn),
        ):
            allow(self.role, [action], arn)
        # The emulator takes every schedule for one of the default group when it checks permissions.
        everything = "schedule/default/*" if settings.local else f"schedule/{settings.prefix}/*"
        self._schedules = Stack.of(self).format_arn(service="scheduler", resource=everything)
        self._finding = (
            f"IAM5[Resource::arn:<AWS::Partition>:scheduler:<AWS::Region>:<AWS::AccountId>:{everything}]"
        )
        self.environment = {
            names.ENV_SCHEDULE_GROUP: self.group.schedule_group_name,
            names.ENV_SCHEDULE_ROLE_ARN: self.role.role_arn,
            names.ENV_TIMER_ARN: timer_arn,
            names.ENV_TIMER_DLQ_ARN: dead_letters.queue_arn,
        }

    def grant_set(self, grantee: iam.IGrantable) -> None:
        """Let a role make and change schedules, and hand them the role they run as."""
        self._grant(grantee, "scheduler:CreateSchedule", "scheduler:UpdateSchedule")
        condition = {"StringEquals": {"iam:PassedToService": SCHEDULER}}
        allow(grantee, ["iam:PassRole"], self.role.role_arn, condition)

    def grant_clear(self, grantee: iam.IGrantable) -> None:
        """Let a role delete schedules."""
        self._grant(grantee, "scheduler:DeleteSchedule")

    def _grant(self, grantee: iam.IGrantable, *actions: str) -> None:
        allow(grantee, actions, self._schedules)
        if isinstance(role := grantee.grant_principal, iam.Role):
            accept(role, self._finding, "schedules are named after batches, so only their group is known")


class Rate(Construct):
    """Runs a function again and again.

    Attributes:
        rule: the rule that does, on the account's default bus.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        function: Function,
        minutes: int,
        dead_letters: sqs.Queue,
    ) -> None:
        super().__init__(scope, id)
        self.rule = events.Rule(
            self,
            "Rule",
            schedule=events.Schedule.rate(Duration.minutes(minutes)),
            targets=[targets.LambdaFunction(function.function, dead_letter_queue=dead_letters)],
        )
