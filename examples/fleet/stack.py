"""What the application adds to fanin: where the office hears that a report is ready, and who may do what."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from examples.fleet.wording import APP, CHANNELS, TOPIC
from fanin import names
from infra import FaninTracker

OFFICE = ("POST/v1/scatters", "GET/v1/scatters/*")
VEHICLE = (
    f"PUT/v1/directory/{TOPIC}/*",
    f"DELETE/v1/directory/{TOPIC}/*",
    "POST/v1/replies",
    "POST/v1/failures",
)
CHANNEL = (
    "sqs:ChangeMessageVisibility",
    "sqs:CreateQueue",
    "sqs:DeleteMessage",
    "sqs:DeleteQueue",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
    "sqs:TagQueue",
)


class FleetStack(Stack):
    """The office's queue for Gather Ready, a role for the office and one for the vehicles.

    Vehicles come and go, so they make their channels themselves: a queue each, with the tag that lets
    fanin send to it.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,  # noqa: A002
        *,
        tracker: FaninTracker,
    ) -> None:
        super().__init__(scope, id, description="fanin example: weekly reports of connected cars")
        local = tracker.settings.local
        ready = sqs.Queue(self, "Ready", enforce_ssl=not local)
        events.Rule(
            self,
            "GatherReady",
            event_bus=tracker.bus,
            event_pattern=events.EventPattern(
                source=[names.EVENT_SOURCE],
                detail_type=[names.GATHER_READY],
                detail={"metadata": {"app": [APP]}},
            ),
            targets=[targets.SqsQueue(ready)],
        )
        office = iam.Role(self, "Office", assumed_by=iam.AccountRootPrincipal())
        tracker.api.grant_invoke(office, *OFFICE)
        ready.grant_consume_messages(office)

        vehicles = iam.Role(self, "Vehicles", assumed_by=iam.AccountRootPrincipal())
        tracker.api.grant_invoke(vehicles, *VEHICLE)
        tracker.scatter.grant_reply(vehicles)
        batches = ["sqs:DeleteMessageBatch"] if local else []  # the emulator has an action of its own for it
        vehicles.add_to_policy(
            iam.PolicyStatement(
                actions=[*CHANNEL, *batches],
                resources=[self.format_arn(service="sqs", resource=f"{CHANNELS}*")],
            )
        )
        for name, value in {
            "ReadyQueueUrl": ready.queue_url,
            "OfficeRoleArn": office.role_arn,
            "VehiclesRoleArn": vehicles.role_arn,
        }.items():
            CfnOutput(self, name, value=value)
