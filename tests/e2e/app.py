"""The app of the e2e tests: fanin, and what users put beside it.

A state machine and a durable function import orders and wait for all of them; a function consumes the queue
of a buffer.
"""

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve()
CHECKOUT = HERE.parents[2]
FUNCTIONS = HERE.with_name("functions")
sys.path[:0] = [str(CHECKOUT), *(str(CHECKOUT / folder) for folder in ("layers/fanin/python", "infra"))]

import aws_cdk as cdk  # noqa: E402
from aws_cdk import aws_lambda as lambda_  # noqa: E402
from aws_cdk import aws_logs as logs  # noqa: E402
from aws_cdk import aws_stepfunctions as sfn  # noqa: E402
from constructs import Construct  # noqa: E402

from fanin_cdk import FaninStack, FanOutAndWait, Settings, TrackedQueue  # noqa: E402
from fanin_cdk.layers import RUNTIME, PipInstall, architecture  # noqa: E402
from fanin_cdk.permissions import allow_sending  # noqa: E402
from tests.e2e.receiver import CERTIFICATE  # noqa: E402


class Everything(FaninStack):
    """A tracker with its users."""

    def __init__(self, scope: Construct, name: str, settings: Settings) -> None:
        super().__init__(scope, name, settings=settings)
        self.tracker.functions["targets"].function.add_environment("SSL_CERT_FILE", str(CERTIFICATE))
        outputs = {
            "StateMachineArn": self._nightly().state_machine_arn,
            "DurableFunction": self._durable().function_name,
            "RendersUrl": self._renders(settings).queue.queue_url,
            "UnroutedUrl": self.tracker.directory.unrouted.queue_url,
        }
        for output, value in outputs.items():
            cdk.CfnOutput(self, output, value=value)

    def _nightly(self) -> sfn.StateMachine:
        """A state machine that waits for one batch a run."""
        work = self.tracker.work.queue
        imported = FanOutAndWait(self, "Import", tracker=self.tracker, queue=work, messages="$.orders")
        report = sfn.Pass(
            self,
            "Report",
            parameters={
                "imported": sfn.JsonPath.number_at("$.items"),
                "batch": sfn.JsonPath.number_at("$.batch_id"),
            },
        )
        imported.add_catch(sfn.Fail(self, "Refused", error="import.failed"), errors=["fanin.BatchCancelled"])
        return sfn.StateMachine(
            self,
            "Nightly",
            definition_body=sfn.DefinitionBody.from_chainable(imported.next(report)),
            tracing_enabled=True,
            logs=sfn.LogOptions(
                destination=logs.LogGroup(self, "Log", removal_policy=cdk.RemovalPolicy.DESTROY),
                level=sfn.LogLevel.ALL,
            ),
        )

    def _durable(self) -> lambda_.Function:
        """A function that sleeps until its batch has ended."""
        work = self.tracker.work.queue
        function = lambda_.Function(
            self,
            "Durable",
            runtime=RUNTIME,
            handler="emulated.handler",
            code=lambda_.Code.from_asset(str(FUNCTIONS / "durable"), exclude=["__pycache__"]),
            layers=[*self.tracker.layers.both, self._sdk()],
            durable_config=lambda_.DurableConfig(execution_timeout=cdk.Duration.hours(1)),
            environment={**self.tracker.environment, "ORDERS_QUEUE_URL": work.queue_url},
            timeout=cdk.Duration.minutes(1),
        )
        self.tracker.grant_producer(function)
        allow_sending(function, work.queue_arn)
        return function

    def _sdk(self) -> lambda_.LayerVersion:
        folder = FUNCTIONS / "durable_sdk"
        # fanin's own layer has the boto3 that it needs.
        bundling = PipInstall(folder / "requirements.txt", ["--no-deps"])
        code = lambda_.Code.from_asset(
            str(folder),
            asset_hash_type=cdk.AssetHashType.CUSTOM,
            asset_hash=bundling.digest(),
            bundling=cdk.BundlingOptions(image=RUNTIME.bundling_image, local=bundling),
        )
        return lambda_.LayerVersion(self, "DurableSdk", code=code, compatible_runtimes=[RUNTIME])

    def _renders(self, settings: Settings) -> TrackedQueue:
        """A queue whose function slows its producers down to its own pace."""
        renderer = lambda_.Function(
            self,
            "Renderer",
            runtime=RUNTIME,
            handler="handler.handler",
            code=lambda_.Code.from_asset(str(FUNCTIONS / "renderer")),
            architecture=architecture(settings),
            timeout=cdk.Duration.minutes(1),
        )
        renders = TrackedQueue(
            self,
            "Renders",
            tracker=self.tracker,
            visibility_timeout=cdk.Duration.minutes(6),
            max_receive_count=1,
            channel=True,
        )
        renders.consume(renderer, max_concurrency=2)
        return renders


if __name__ == "__main__":
    context = json.loads((CHECKOUT / "cdk.json").read_text())["context"]
    app = cdk.App(context=context | json.loads(os.environ["CDK_CONTEXT_JSON"]))
    Everything(app, "fanin", Settings.from_context(app.node))
    app.synth()
