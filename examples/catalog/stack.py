"""What an application adds: a queue, a consumer, a table, a rule for the event, a state that waits."""

from pathlib import Path

from aws_cdk import CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from fanin import names
from fanin_cdk import FaninTracker, FanOutAndWait, TrackedQueue
from fanin_cdk.layers import RUNTIME, architecture

CONSUMER = Path(__file__).with_name("consumer")
OPENER = Path(__file__).with_name("opener")


class CatalogStack(Stack):
    """Rows arrive in a queue and go to a table; after the last one, a second queue gets fanin's event."""

    def __init__(
        self,
        scope: Construct,
        id: str,  # noqa: A002
        *,
        tracker: FaninTracker,
    ) -> None:
        super().__init__(scope, id, description="fanin example: import a catalog of airports")
        rows = TrackedQueue(self, "Rows", tracker=tracker)
        table = dynamodb.Table(
            self,
            "Airports",
            partition_key=dynamodb.Attribute(name="icao", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            removal_policy=RemovalPolicy.DESTROY,
        )
        consumer = self._function("Consumer", CONSUMER, tracker, AIRPORTS_TABLE=table.table_name)
        rows.consume(consumer)
        table.grant(consumer, "dynamodb:PutItem")

        told = sqs.Queue(self, "Told", enforce_ssl=True)
        events.Rule(
            self,
            "BatchEnded",
            event_bus=tracker.bus,
            event_pattern=events.EventPattern(source=[names.EVENT_SOURCE]),
            targets=[targets.SqsQueue(told)],
        )
        machine = self._machine(tracker)
        for name, value in {
            "RowsQueueUrl": rows.queue.queue_url,
            "ToldQueueUrl": told.queue_url,
            "AirportsTable": table.table_name,
            "ConsumerName": consumer.function_name,
            "StateMachineArn": machine.state_machine_arn,
        }.items():
            CfnOutput(self, name, value=value)

    def _machine(self, tracker: FaninTracker) -> sfn.StateMachine:
        """A workflow that waits for the end of an import, and goes on with its counts."""
        opener = self._function("Opener", OPENER, tracker)
        tracker.equip(opener)
        tracker.grant_producer(opener)
        waiting = FanOutAndWait(self, "Import", producer=opener, timeout=Duration.days(1))
        # The cause of a failed task is a text with the detail of the event.
        counts = sfn.Pass(
            self,
            "SomeRowsFailed",
            parameters={"detail": sfn.JsonPath.string_to_json(sfn.JsonPath.string_at("$.Cause"))},
            output_path="$.detail",
        )
        waiting.add_catch(counts, errors=["fanin.ItemsFailed"])
        return sfn.StateMachine(
            self,
            "Nightly",
            definition_body=sfn.DefinitionBody.from_chainable(waiting.next(sfn.Succeed(self, "AllImported"))),
        )

    def _function(self, name: str, code: Path, tracker: FaninTracker, **environment: str) -> lambda_.Function:
        return lambda_.Function(
            self,
            name,
            code=lambda_.Code.from_asset(str(code), exclude=["__pycache__"]),
            handler="handler.handler",
            runtime=RUNTIME,
            architecture=architecture(tracker.settings),
            log_group=logs.LogGroup(
                self,
                f"{name}Logs",
                retention=logs.RetentionDays.ONE_WEEK,
                removal_policy=RemovalPolicy.DESTROY,
            ),
            timeout=Duration.seconds(30),
            memory_size=512,
            environment=environment,
        )
