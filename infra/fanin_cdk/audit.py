"""The scheduled audit: exports the tables, runs the audit job on them, and fails if that finds errors."""

from collections.abc import Mapping, Sequence

from aws_cdk import ArnFormat, Aws, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_emrserverless as emr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from fanin_cdk.alarms import RUNBOOKS
from fanin_cdk.findings import accept, accept_below
from fanin_cdk.functions import log_group
from fanin_cdk.keys import allow_logs_of_jobs
from fanin_cdk.permissions import allow
from fanin_cdk.tracker import FaninTracker

EXPORTS = "exports"
"""Folder of the bucket for exports."""
AUDITS = "data/audits"
"""Folder of the bucket for the results of audits."""
SNAPSHOTS = f"{AUDITS}/snapshots"
"""Folder for the rows that audits read, which are as large as the tables."""
POLL = 60
"""Seconds between two checks of an export, which takes DynamoDB at least five minutes."""
AGAIN = [
    {
        "ErrorEquals": ["States.TaskFailed"],
        "IntervalSeconds": 10,
        "BackoffRate": 2,
        "MaxAttempts": 5,
        "JitterStrategy": "FULL",
    }
]
"""DynamoDB may be busy, or fail; an export that is asked for again with its token is not made again."""
LONGEST = Duration.hours(6)
"""Time after which an execution is stopped."""


class AuditSchedule(Construct):
    """A state machine that exports the tables of batches and words to the pipeline's bucket, and audits them.

    It runs every ``pipeline_audit_hours``. Exports read the backups, so they use no capacity of the tables.
    An execution fails if the audit finds something wrong. Then an alarm goes off, and also if an execution
    takes too long or is stopped.

    The role of the state machine may export both tables into ``exports/``, run jobs in the application, and
    pass the role of the jobs. It may also manage the rule of EventBridge by which Step Functions learns that
    a job has ended.

    Args:
        scope: parent construct.
        id: its id there.
        tracker: the tracker whose tables are audited.
        bucket: gets the exports in ``exports/``, and the results of the audits in ``data/audits/``.
        application: the EMR Serverless application that runs the job.
        role: the role of the job.
        spark_submit: ``JobDriver.SparkSubmit`` of StartJobRun, without ``EntryPointArguments``.

    Attributes:
        machine: the state machine; start an execution to audit at once.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        tracker: FaninTracker,
        bucket: s3.Bucket,
        application: emr.CfnApplication,
        role: iam.Role,
        spark_submit: Mapping[str, object],
    ) -> None:
        super().__init__(scope, id)
        settings = tracker.settings
        self._bucket = bucket
        self._application = application
        self._role = role
        self._spark_submit = spark_submit
        tables = {"batches": tracker.storage.batches, "words": tracker.storage.words}
        exporting = sfn.Parallel(self, "Export", result_path="$.exports")
        for name, table in tables.items():
            exporting.branch(self._export(name, table, settings.kms_key_arn))
        log = log_group(self, "Logs", settings=settings, vended=f"states/{settings.prefix}-audit")
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            definition_body=sfn.DefinitionBody.from_chainable(exporting.next(self._audit())),
            timeout=LONGEST,
            tracing_enabled=True,
            logs=sfn.LogOptions(destination=log, level=sfn.LogLevel.ALL),
        )
        for table in tables.values():
            self._grant_export(table)
        self._grant_run()
        allow_logs_of_jobs(self.machine.role, settings.kms_key_arn)
        accept(
            self.machine.role,
            "IAM5[Resource::*]",
            "the actions of X-Ray and of log delivery do not take resources",
        )
        scheduler.Schedule(
            self,
            "Schedule",
            schedule=scheduler.ScheduleExpression.rate(Duration.hours(settings.pipeline_audit_hours)),
            target=targets.StepFunctionsStartExecution(
                self.machine, input=scheduler.ScheduleTargetInput.from_object({})
            ),
            description="audits the batches of fanin",
        )
        self._alarms(settings.alarm_topic_arn)

    def _export(self, name: str, table: dynamodb.Table, key_arn: str) -> sfn.Chain:
        # An export names its encryption itself, so the bucket's default does not count.
        under = {"S3SseAlgorithm": "KMS", "S3SseKmsKeyId": key_arn} if key_arn else {}
        start = self._state(
            f"Export {name}",
            f"arn:{Aws.PARTITION}:states:::aws-sdk:dynamodb:exportTableToPointInTime",
            {
                "TableArn": table.table_arn,
                "S3Bucket": self._bucket.bucket_name,
                "S3Prefix": f"{EXPORTS}/{name}",
                "ExportFormat": "DYNAMODB_JSON",
                **under,
                # A request that is repeated within one execution does not start a second export.
                "ClientToken.$": f"States.Hash(States.Format('{name} {{}}', $$.Execution.Id), 'SHA-256')",
            },
            retry=AGAIN,
        )
        wait = sfn.Wait(self, f"Wait for {name}", time=sfn.WaitTime.duration(Duration.seconds(POLL)))
        look = self._state(
            f"Look at {name}",
            f"arn:{Aws.PARTITION}:states:::aws-sdk:dynamodb:describeExport",
            {"ExportArn.$": "$.ExportDescription.ExportArn"},
            retry=AGAIN,
        )
        status = "$.ExportDescription.ExportStatus"
        done = sfn.Choice(self, f"Is {name} there?")
        done.when(sfn.Condition.string_equals(status, "IN_PROGRESS"), wait)
        done.when(sfn.Condition.string_equals(status, "COMPLETED"), sfn.Pass(self, f"{name} exported"))
        done.otherwise(
            sfn.Fail(
                self, f"{name} not exported", error_path=status, cause_path="$.ExportDescription.ExportArn"
            )
        )
        return start.next(wait).next(look).next(done)

    def _audit(self) -> sfn.CustomState:
        bucket = self._bucket.s3_url_for_object()
        where = [
            f"States.Format('{bucket}/{EXPORTS}/{name}/AWSDynamoDB/{{}}',"
            f" States.ArrayGetItem(States.StringSplit($.exports[{at}].ExportDescription.ExportArn, '/'), 3))"
            for at, name in enumerate(("batches", "words"))
        ]
        arguments = (
            f"States.Array('audit', '--batches-export', {where[0]}, '--words-export', {where[1]},"
            f" '--snapshot', States.Format('{bucket}/{SNAPSHOTS}/{{}}', $$.Execution.Name),"
            f" '--output', States.Format('{bucket}/{AUDITS}/{{}}', $$.Execution.Name))"
        )
        return self._state(
            "Audit",
            f"arn:{Aws.PARTITION}:states:::emr-serverless:startJobRun.sync",
            {
                "ApplicationId": self._application.attr_application_id,
                "ExecutionRoleArn": self._role.role_arn,
                "Name": "audit",
                "JobDriver": {"SparkSubmit": {**self._spark_submit, "EntryPointArguments.$": arguments}},
            },
        )

    def _state(
        self,
        id: str,
        resource: str,
        parameters: dict[str, object],
        retry: Sequence[Mapping[str, object]] = (),
    ) -> sfn.CustomState:
        state = {"Type": "Task", "Resource": resource, "Parameters": parameters}
        return sfn.CustomState(self, id, state_json={**state, **({"Retry": [*retry]} if retry else {})})

    def _grant_export(self, table: dynamodb.Table) -> None:
        role, bucket = self.machine.role, self._bucket
        allow(role, ["dynamodb:ExportTableToPointInTime"], table.table_arn)
        allow(role, ["dynamodb:DescribeExport"], f"{table.table_arn}/export/*")
        accept_below(
            role,
            table,
            table.table_arn,
            "/export/*",
            "the id of an export is known only after it has started",
        )
        allow(
            role,
            ["s3:AbortMultipartUpload", "s3:PutObject", "s3:PutObjectAcl"],
            bucket.arn_for_objects(f"{EXPORTS}/*"),
        )
        accept_below(
            role, bucket, bucket.bucket_arn, f"/{EXPORTS}/*", "DynamoDB chooses the names of the files"
        )

    def _grant_run(self) -> None:
        stack, role = Stack.of(self), self.machine.role
        application = self._application.attr_arn
        allow(role, ["emr-serverless:StartJobRun"], application)
        allow(role, ["emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"], f"{application}/jobruns/*")
        accept_below(
            role,
            self._application,
            application,
            "/jobruns/*",
            "the id of a job run is known only after it has started",
        )
        passed = {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}
        allow(role, ["iam:PassRole"], self._role.role_arn, passed)
        rule = stack.format_arn(
            service="events",
            resource="rule",
            resource_name="StepFunctionsGetEventsForEMRServerlessJobRule",
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        allow(role, ["events:DescribeRule", "events:PutRule", "events:PutTargets"], rule)

    def _alarms(self, topic: str) -> None:
        notify = actions.SnsAction(sns.Topic.from_topic_arn(self, "Topic", topic)) if topic else None
        period = Duration.minutes(5)
        for name, metric, why in (
            ("Failed", self.machine.metric_failed(period=period), "found something wrong, or could not run"),
            ("TimedOut", self.machine.metric_timed_out(period=period), "took over six hours"),
            ("Aborted", self.machine.metric_aborted(period=period), "was stopped before its end"),
        ):
            alarm = cloudwatch.Alarm(
                self,
                name,
                metric=metric,
                threshold=1,
                evaluation_periods=1,
                alarm_description=f"the audit {why} (what to do: {RUNBOOKS}#audit)",
                treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            )
            if notify:
                alarm.add_alarm_action(notify)
