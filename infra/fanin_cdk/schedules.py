"""Schedules: one-time ones for the deadlines of batches, and rates for the reaper and the registrar."""

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
from fanin_cdk.findings import accept
from fanin_cdk.functions import Function
from fanin_cdk.permissions import allow
from fanin_cdk.settings import Settings

SCHEDULER = "scheduler.amazonaws.com"


class Deadlines(Construct):
    """The schedules for deadlines: each batch with a deadline has one, which calls the timer function.

    Args:
        scope: parent construct.
        id: its id there.
        settings: settings of the deployment.
        timer: the function that handles a deadline; it gets the name ``<prefix>-timer``.
        dead_letters: queue for calls of the timer that failed.

    Attributes:
        group: the schedule group, which contains only these schedules.
        role: the role of the schedules; it may invoke the timer and send to the dead-letter queue.
        environment: variables of a function that creates or deletes schedules.
    """

    def __init__(
        self, scope: Construct, id: str, *, settings: Settings, timer: Function, dead_letters: sqs.Queue
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
        # The timer needs its own ARN to set further schedules; with a fixed name the ARN is known beforehand.
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
        # When the emulator checks permissions, it assumes the default group for every schedule.
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
        """Allow a role to create and update schedules of the group, and to pass them their role."""
        self._grant(grantee, "scheduler:CreateSchedule", "scheduler:UpdateSchedule")
        condition = {"StringEquals": {"iam:PassedToService": SCHEDULER}}
        allow(grantee, ["iam:PassRole"], self.role.role_arn, condition)

    def grant_clear(self, grantee: iam.IGrantable) -> None:
        """Allow a role to delete schedules of the group."""
        self._grant(grantee, "scheduler:DeleteSchedule")

    def _grant(self, grantee: iam.IGrantable, *actions: str) -> None:
        allow(grantee, actions, self._schedules)
        if isinstance(role := grantee.grant_principal, iam.Role):
            accept(
                role,
                self._finding,
                "the schedules have the names of batches, so only their group is known beforehand",
            )


class Rate(Construct):
    """Invokes a function at a fixed rate.

    Args:
        scope: parent construct.
        id: its id there.
        function: the function.
        minutes: minutes between two invocations.
        dead_letters: queue for invocations that failed.

    Attributes:
        rule: the rule, on the default bus of the account.
    """

    def __init__(
        self, scope: Construct, id: str, *, function: Function, minutes: int, dead_letters: sqs.Queue
    ) -> None:
        super().__init__(scope, id)
        self.rule = events.Rule(
            self,
            "Rule",
            schedule=events.Schedule.rate(Duration.minutes(minutes)),
            targets=[targets.LambdaFunction(function.function, dead_letter_queue=dead_letters)],
        )
