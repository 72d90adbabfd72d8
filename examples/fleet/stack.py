"""What the application adds to fanin: a queue for Gather Ready, and roles for office and vehicles."""

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from examples.fleet.wording import APP, CHANNELS, TOPIC
from fanin import names
from fanin_cdk import FaninTracker

OFFICE = ("POST/v1/scatters", "GET/v1/scatters/*")
VEHICLE = (f"PUT/v1/directory/{TOPIC}/*", f"DELETE/v1/directory/{TOPIC}/*", "POST/v1/replies", "POST/v1/acks")
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
    """The queue of the office for Gather Ready, a role for the office, and one for the vehicles.

    The office may start scatters, read them, and receive from its queue. Vehicles may register, reply and
    fail items. Since vehicles come and go, they create their queues themselves, with the tag that allows
    fanin to send to them; their role may do so for names with the prefix ``CHANNELS``.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,  # noqa: A002
        *,
        tracker: FaninTracker,
    ) -> None:
        super().__init__(scope, id, description="fanin example: weekly reports of connected cars")
        ready = sqs.Queue(self, "Ready", enforce_ssl=not tracker.settings.local)
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
        channels = self.format_arn(service="sqs", resource=f"{CHANNELS}*")
        vehicles.add_to_policy(iam.PolicyStatement(actions=[*CHANNEL], resources=[channels]))
        for name, value in {
            "ReadyQueueUrl": ready.queue_url,
            "OfficeRoleArn": office.role_arn,
            "VehiclesRoleArn": vehicles.role_arn,
        }.items():
            CfnOutput(self, name, value=value)
