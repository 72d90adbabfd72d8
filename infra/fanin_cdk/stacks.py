"""fanin's own stacks: the service, and the Spark jobs beside it."""

from collections.abc import Mapping

from aws_cdk import CfnOutput, CrossStackReferences, ReferenceStrength, Stack
from constructs import Construct

from fanin import names
from fanin_cdk.pipeline import Pipeline
from fanin_cdk.settings import Settings
from fanin_cdk.tracker import FaninTracker


class FaninStack(Stack):
    """A stack with one tracker; its outputs are what clients need to find it.

    Args:
        scope: the app.
        id: name of the stack.
        settings: settings of the deployment; None takes the defaults.

    Attributes:
        tracker: the tracker, which contains all resources.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings | None = None) -> None:
        super().__init__(
            scope, id, description="fanin: know, exactly and at once, when a fan-out is finished"
        )
        self.tracker = FaninTracker(self, "Tracker", settings=settings)
        tracker = self.tracker
        values = {
            **tracker.environment,
            names.ENV_BUS: tracker.bus.event_bus_name,
            names.ENV_WORK_QUEUE_URL: tracker.work.queue.queue_url,
        }
        outputs = {output: values[variable] for variable, output in names.OUTPUTS.items()}
        _add_outputs(self, {names.OUTPUT_API_URL: tracker.api.url, **outputs})


class PipelineStack(Stack):
    """A stack with the Spark jobs of a tracker in the same app; ``fanin spark submit`` reads its outputs.

    Args:
        scope: the app.
        id: name of the stack.
        tracker: the tracker that the jobs use.

    Attributes:
        pipeline: the pipeline, which contains all resources.
    """

    def __init__(self, scope: Construct, id: str, *, tracker: FaninTracker) -> None:
        super().__init__(scope, id, description="fanin: Spark jobs that fan out, acknowledge and audit")
        # CloudFormation refuses to delete an export that is in use, so a deployment of the tracker without
        # its pipeline would fail.
        CrossStackReferences.of(self).consume(ReferenceStrength.WEAK)
        self.pipeline = Pipeline(self, "Pipeline", tracker=tracker)
        pipeline = self.pipeline
        outputs = {
            names.PIPELINE_OUTPUT_APPLICATION: pipeline.application.attr_application_id,
            names.PIPELINE_OUTPUT_ROLE: pipeline.role.role_arn,
            names.PIPELINE_OUTPUT_BUCKET: pipeline.bucket.bucket_name,
            names.PIPELINE_OUTPUT_ENTRY: pipeline.entry.s3_object_url,
            names.PIPELINE_OUTPUT_PACKAGE: pipeline.package.s3_object_url,
            names.PIPELINE_OUTPUT_CONF: self.to_json_string(pipeline.conf),
        }
        if pipeline.audit:
            outputs[names.PIPELINE_OUTPUT_AUDIT] = pipeline.audit.machine.state_machine_arn
        _add_outputs(self, outputs)


def _add_outputs(stack: Stack, outputs: Mapping[str, str]) -> None:
    for name, value in outputs.items():
        CfnOutput(stack, name, value=value)
