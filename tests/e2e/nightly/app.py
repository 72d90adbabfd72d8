"""Somebody's app: a state machine and a durable function, each of which imports orders and waits for all."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve()
CHECKOUT = HERE.parents[3]
sys.path[:0] = [str(CHECKOUT), *(str(CHECKOUT / folder) for folder in ("layers/fanin/python", "infra"))]

import aws_cdk as cdk  # noqa: E402
from aws_cdk import aws_lambda as lambda_  # noqa: E402
from aws_cdk import aws_logs as logs  # noqa: E402
from aws_cdk import aws_stepfunctions as sfn  # noqa: E402
from constructs import Construct  # noqa: E402

from fanin_cdk import FaninStack, FanOutAndWait, Settings  # noqa: E402
from fanin_cdk.layers import RUNTIME, PipInstall  # noqa: E402
from fanin_cdk.permissions import allow_sending  # noqa: E402

CERTIFICATE = CHECKOUT / ".fanin" / "receiver" / "certificate.pem"
"""Of the webhook receiver that tests start on this machine; the function of targets trusts it."""


class Nightly(FaninStack):
    """A tracker, and a state machine and a durable function that wait for one batch a run."""

    def __init__(self, scope: Construct, name: str, settings: Settings) -> None:
        super().__init__(scope, name, settings=settings)
        work = self.tracker.work.queue
        self.tracker.functions["targets"].function.add_environment("SSL_CERT_FILE", str(CERTIFICATE))
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
        machine = sfn.StateMachine(
            self,
            "Nightly",
            definition_body=sfn.DefinitionBody.from_chainable(imported.next(report)),
            tracing_enabled=True,
            logs=sfn.LogOptions(
                destination=logs.LogGroup(self, "Log", removal_policy=cdk.RemovalPolicy.DESTROY),
                level=sfn.LogLevel.ALL,
            ),
        )
        cdk.CfnOutput(self, "StateMachineArn", value=machine.state_machine_arn)
        cdk.CfnOutput(self, "DurableFunction", value=self._durable().function_name)

    def _durable(self) -> lambda_.Function:
        work = self.tracker.work.queue
        function = lambda_.Function(
            self,
            "Durable",
            runtime=RUNTIME,
            handler="emulated.handler",
            code=lambda_.Code.from_asset(str(HERE.with_name("durable")), exclude=["__pycache__"]),
            layers=[*self.tracker.layers.both, self._sdk()],
            durable_config=lambda_.DurableConfig(execution_timeout=cdk.Duration.hours(1)),
            environment={**self.tracker.environment, "ORDERS_QUEUE_URL": work.queue_url},
            timeout=cdk.Duration.minutes(1),
        )
        self.tracker.grant_producer(function)
        allow_sending(function, work.queue_arn)
        return function

    def _sdk(self) -> lambda_.LayerVersion:
        folder = HERE.with_name("durable_sdk")
        # fanin's own layer has the boto3 that it needs.
        bundling = PipInstall(folder / "requirements.txt", ["--no-deps"])
        code = lambda_.Code.from_asset(
            str(folder),
            asset_hash_type=cdk.AssetHashType.CUSTOM,
            asset_hash=bundling.digest(),
            bundling=cdk.BundlingOptions(image=RUNTIME.bundling_image, local=bundling),
        )
        return lambda_.LayerVersion(self, "DurableSdk", code=code, compatible_runtimes=[RUNTIME])


if __name__ == "__main__":
    context = json.loads((CHECKOUT / "cdk.json").read_text())["context"]
    app = cdk.App(context=context | json.loads(os.environ["CDK_CONTEXT_JSON"]))
    Nightly(app, "nightly", Settings.from_context(app.node))
    app.synth()
