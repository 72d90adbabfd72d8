"""fanin's own stacks: the service, and the Spark jobs beside it."""

from __future__ import annotations

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
        outputs = {
            names.OUTPUT_API_URL: tracker.api.url,
            names.OUTPUT_BATCHES_TABLE: tracker.storage.batches.table_name,
            names.OUTPUT_WORDS_TABLE: tracker.storage.words.table_name,
            names.OUTPUT_PARTS_TABLE: tracker.storage.parts.table_name,
            names.OUTPUT_DIRECTORY_TABLE: tracker.storage.directory.table_name,
            names.OUTPUT_BUS: tracker.bus.event_bus_name,
            names.OUTPUT_WORK_QUEUE: tracker.work.queue.queue_url,
            names.OUTPUT_ACK_QUEUE: tracker.acks.queue.queue_url,
            names.OUTPUT_SCATTER_QUEUE: tracker.scatter.jobs.queue.queue_url,
            names.OUTPUT_REDRIVE_QUEUE: tracker.redrives.jobs.queue.queue_url,
            names.OUTPUT_REPLY_QUEUE: tracker.scatter.replies.queue.queue_url,
            names.OUTPUT_TARGETS_QUEUE: tracker.targets.jobs.queue.queue_url,
            names.OUTPUT_CLAIMS_BUCKET: tracker.scatter.claims.bucket_name,
            names.OUTPUT_SCHEDULE_GROUP: tracker.deadlines.group.schedule_group_name,
            names.OUTPUT_SCHEDULE_ROLE: tracker.deadlines.role.role_arn,
            names.OUTPUT_TIMER: tracker.functions["timer"].function.function_arn,
            names.OUTPUT_TIMER_DLQ: tracker.timer_dead_letters.queue_arn,
            names.OUTPUT_ROUTER: tracker.functions["router"].function.function_arn,
            names.OUTPUT_BUFFER_PREFIX: tracker.buffers.environment[names.ENV_BUFFER_PREFIX],
            names.OUTPUT_BUFFER_DEAD_LETTERS: tracker.buffers.dead_letters.queue_arn,
        }
        _add_outputs(self, outputs)


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
