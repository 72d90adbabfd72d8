"""The Spark jobs on EMR Serverless: their application, role, bucket and code."""

import re

from aws_cdk import (
    Annotations,
    ArnFormat,
    AssetHashType,
    BundlingOptions,
    CustomResource,
    Duration,
    IgnoreMode,
    Stack,
)
from aws_cdk import aws_emrserverless as emr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from fanin_cdk.assets import PACKAGE, REQUIREMENTS, CopyPackage
from fanin_cdk.audit import EXPORTS, SNAPSHOTS, AuditSchedule
from fanin_cdk.findings import accept, accept_below
from fanin_cdk.functions import log_group
from fanin_cdk.keys import allow_logs_of_jobs, encrypt
from fanin_cdk.layers import RUNTIME, PipInstall, foreign
from fanin_cdk.permissions import allow, allow_channels, allow_looking_at_queues, allow_sending
from fanin_cdk.pipeline_network import PipelineNetwork
from fanin_cdk.table_access import PIPELINE
from fanin_cdk.tracker import FaninTracker

EMR = "emr-serverless.amazonaws.com"
PYTHON = "3.11"
"""Version of Python that runs the jobs on EMR; their dependencies are built for it."""
UNPACKED = "dependencies"
"""Folder into which Spark unpacks the dependencies, in the working directory of each process."""
ENTRY = PACKAGE / "spark" / "jobs" / "__main__.py"
NOT_IN_JOBS = ("cli", "local")
CORES = 4
"""vCPUs of an executor, and those of a driver by EMR's default; a worker of this size has 16 GB."""
MEMORY = {"spark.executor.memory": "12g", "spark.executor.memoryOverhead": "4g"}
"""Memory of an executor. Python runs in the overhead: a process for each core, some 350 MB and its rows."""
_DISK_OF_CORE = 20
"""GB of disk that workers may have together, for each of their vCPUs, whatever the setting."""


class Pipeline(Construct):
    """An EMR Serverless application for the jobs of ``fanin.spark``; it costs nothing while no job runs.

    In a stack of your own pass it the tracker, and grant its role access to your data::

        pipeline = Pipeline(self, "Pipeline", tracker=tracker)
        lake.grant_read(pipeline.role)
        orders.grant_send_messages(pipeline.role)

    Args:
        scope: parent construct.
        id: its id there.
        tracker: the tracker that the jobs use.
        network: a VPC for the jobs; None makes the one that the settings ask for, or takes the subnets that
            they name. Without any, jobs reach S3 and DynamoDB, and neither SQS nor an API.

    Raises:
        ValueError: a variable of the tracker has a blank, and cannot be passed to jobs.

    Attributes:
        application: runs the jobs.
        network: the VPC of the jobs; None if they have none, or one that the settings name.
        role: the role of the jobs. It may read, scan and write the tables, set deadlines, start scatters,
            send to the tracker's work queue and to queues with the tag ``fanin:channel``, read the attributes
            of all queues of the account in this region, read the bucket, write and delete in ``data/`` there,
            read the inputs that the settings name, and write its log.
        bucket: has ``code/`` for what ``fanin spark submit`` uploads (kept for 90 days), ``exports/`` for
            exports of the tables (7 days), and ``data/`` for the results of jobs (kept, but for
            ``data/audits/snapshots/``: 7 days).
        package: fanin, as a zip file for ``--py-files``.
        entry: the script that starts any job.
        conf: Spark properties of all jobs: size and number of executors, dependencies, Python, and the
            tracker's environment.
        spark_submit: ``JobDriver.SparkSubmit`` of StartJobRun, without ``EntryPointArguments``; these are the
            name of the job and its arguments.
    """

    def __init__(
        self, scope: Construct, id: str, *, tracker: FaninTracker, network: PipelineNetwork | None = None
    ) -> None:
        super().__init__(scope, id)
        self._settings = settings = tracker.settings
        self.network = network
        if network is None and settings.pipeline_network != "none":
            self.network = PipelineNetwork(self, "Network", nat=settings.pipeline_network == "nat")
        self.bucket = self._bucket()
        log = log_group(self, "Logs", settings=settings)
        self.application = self._application(log)
        cleaned = self._clean(tracker)
        self.role = self._role(tracker, log)
        package = CopyPackage(".", NOT_IN_JOBS)
        self.package = assets.Asset(
            self,
            "Package",
            path=package.source,
            exclude=package.excluded,
            ignore_mode=IgnoreMode.GIT,
            bundling=BundlingOptions(image=RUNTIME.bundling_image, local=package),
        )
        self.entry = assets.Asset(self, "Entry", path=str(ENTRY))
        dependencies = self._dependencies()
        self._read_code(self.package, self.entry, dependencies)
        self.conf = self._conf(tracker, dependencies)
        self.spark_submit = self._spark_submit()
        self.audit: AuditSchedule | None = None
        if settings.pipeline_audit_hours:
            self.audit = AuditSchedule(
                self,
                "Audit",
                tracker=tracker,
                bucket=self.bucket,
                application=self.application,
                role=self.role,
                spark_submit=self.spark_submit,
            )
            if cleaned is not None:
                # What is deleted first starts no job, and no application, any more.
                self.audit.node.add_dependency(cleaned)
        encrypt(self, settings.kms_key_arn)

    def _clean(self, tracker: FaninTracker) -> CustomResource | None:
        """What stops the application with the stack, and empties the bucket with ``removal=destroy``."""
        if tracker.removal is None:
            return None
        actions = ["emr-serverless:GetApplication", "emr-serverless:StopApplication"]
        return tracker.removal.clean(
            self,
            [self.bucket],
            {"Application": self.application.attr_application_id},
            [iam.PolicyStatement(actions=actions, resources=[self.application.attr_arn])],
        )

    def _bucket(self) -> s3.Bucket:
        bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            lifecycle_rules=[
                s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(1)),
                s3.LifecycleRule(prefix=f"{EXPORTS}/", expiration=Duration.days(7)),
                s3.LifecycleRule(prefix=f"{SNAPSHOTS}/", expiration=Duration.days(7)),
                s3.LifecycleRule(prefix="code/", expiration=Duration.days(90)),
            ],
            removal_policy=self._settings.removal_policy,
        )
        accept(
            bucket, "S1", "only jobs, exports and those who submit jobs use it, and CloudTrail records them"
        )
        return bucket

    def _application(self, log: logs.LogGroup) -> emr.CfnApplication:
        settings = self._settings
        cores = settings.pipeline_max_vcpu
        disk = max(_DISK_OF_CORE * cores, settings.pipeline_disk_gb * (cores // CORES))
        cls = emr.CfnApplication
        return cls(
            self,
            "Application",
            name=settings.prefix,
            type="SPARK",
            release_label=settings.pipeline_release,
            architecture=settings.architecture.upper(),
            auto_start_configuration=cls.AutoStartConfigurationProperty(enabled=True),
            auto_stop_configuration=cls.AutoStopConfigurationProperty(enabled=True, idle_timeout_minutes=5),
            maximum_capacity=cls.MaximumAllowedResourcesProperty(
                cpu=f"{cores} vCPU", memory=f"{8 * cores} GB", disk=f"{disk} GB"
            ),
            network_configuration=self._network_configuration(),
            monitoring_configuration=cls.MonitoringConfigurationProperty(
                cloud_watch_logging_configuration=cls.CloudWatchLoggingConfigurationProperty(
                    enabled=True, log_group_name=log.log_group_name
                )
            ),
        )

    def _network_configuration(self) -> emr.CfnApplication.NetworkConfigurationProperty | None:
        subnets = self._settings.pipeline_subnet_ids
        groups = self._settings.pipeline_security_group_ids
        if self.network is not None:
            subnets, groups = self.network.subnets, [self.network.security_group.security_group_id]
        if not subnets:
            Annotations.of(self).add_warning_v2(
                "fanin:pipeline-network",
                "jobs have no VPC, so fan-out cannot reach SQS; see the setting pipeline_network",
            )
            return None
        return emr.CfnApplication.NetworkConfigurationProperty(subnet_ids=subnets, security_group_ids=groups)

    def _role(self, tracker: FaninTracker, log: logs.LogGroup) -> iam.Role:
        stack = Stack.of(self)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                EMR,
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    "ArnLike": {"aws:SourceArn": self._application_arn()},
                },
            ),
        )
        settings, bucket = self._settings, self.bucket
        tracker.storage.grant(role, PIPELINE)
        tracker.deadlines.grant_set(role)
        tracker.scatter.grant_start(role)
        allow_sending(role, tracker.work.queue.queue_arn)
        allow_channels(role, settings=settings)
        allow_looking_at_queues(role, stack=stack)
        # What S3A uploads in parts it also takes back, its own and those of a task that died.
        allow(role, ["s3:ListBucket", "s3:ListBucketMultipartUploads"], bucket.bucket_arn)
        allow(role, ["s3:GetObject"], bucket.arn_for_objects("*"))
        allow(
            role,
            ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:PutObject"],
            bucket.arn_for_objects("data/*"),
        )
        for place in settings.pipeline_input_places:
            name = place.partition("/")[0]
            allow(role, ["s3:ListBucket"], f"arn:{stack.partition}:s3:::{name}")
            allow(role, ["s3:GetObject"], f"arn:{stack.partition}:s3:::{_objects(place)}")
        allow(
            role,
            ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            f"{log.log_group_arn}:*",
        )
        everywhere = stack.format_arn(
            service="logs", resource="log-group", resource_name="*", arn_format=ArnFormat.COLON_RESOURCE_NAME
        )
        allow(role, ["logs:DescribeLogGroups"], everywhere)
        allow_logs_of_jobs(role, settings.kms_key_arn)
        self._accept_findings(role, log)
        return role

    def _accept_findings(self, role: iam.Role, log: logs.LogGroup) -> None:
        bucket = self.bucket
        accept_below(role, bucket, bucket.bucket_arn, "/*", "the whole bucket belongs to the pipeline")
        accept_below(role, bucket, bucket.bucket_arn, "/data/*", "jobs choose the names of their results")
        accept_below(role, log, log.log_group_arn, ":*", "log streams have the names of job runs")
        groups = "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:*"
        accept(role, f"IAM5[Resource::{groups}]", "DescribeLogGroups does not take a single log group")
        queues = "arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:*"
        accept(
            role, f"IAM5[Resource::{queues}]", "a queue that is not there has neither a tag nor a known name"
        )
        accept(role, "IAM5[Resource::*]", "queues of users, and only those with the tag fanin:channel")
        for place in self._settings.pipeline_input_places:
            objects = f"arn:<AWS::Partition>:s3:::{_objects(place)}"
            accept(role, f"IAM5[Resource::{objects}]", "an input that the settings name")

    def _application_arn(self) -> str:
        # Any application of the account: the application refers to this role, so the role cannot refer to it.
        return Stack.of(self).format_arn(
            service="emr-serverless", resource="/applications", resource_name="*"
        )

    def _dependencies(self) -> assets.Asset:
        folder = REQUIREMENTS / "spark"
        requirements = folder / requirements_for(self._settings.pipeline_release)
        bundling = PipInstall(requirements, foreign(self._settings.architecture, PYTHON))
        return assets.Asset(
            self,
            "Dependencies",
            path=str(folder),
            asset_hash_type=AssetHashType.CUSTOM,
            asset_hash=bundling.digest(),
            bundling=BundlingOptions(image=RUNTIME.bundling_image, local=bundling),
        )

    def _read_code(self, *code: assets.Asset) -> None:
        for asset in code:
            allow(self.role, ["s3:GetObject"], asset.bucket.arn_for_objects(asset.s3_object_key))

    def _conf(self, tracker: FaninTracker, dependencies: assets.Asset) -> dict[str, str]:
        region = Stack.of(self).region
        process = {
            "PYSPARK_PYTHON": f"python{PYTHON}",
            "PYTHONPATH": f"./{UNPACKED}/python",
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,  # boto3 reads this one
        }
        driver = {**process, "PYSPARK_DRIVER_PYTHON": f"python{PYTHON}", **tracker.environment}
        return {
            "spark.executor.cores": str(CORES),
            **MEMORY,
            "spark.emr-serverless.executor.disk": f"{self._settings.pipeline_disk_gb}G",
            # EMR has no limit by default, and a job takes its tasks from this one; the driver needs a worker.
            "spark.dynamicAllocation.maxExecutors": str(self._settings.pipeline_max_vcpu // CORES - 1),
            "spark.archives": f"{dependencies.s3_object_url}#{UNPACKED}",
            **{f"spark.emr-serverless.driverEnv.{name}": value for name, value in driver.items()},
            **{f"spark.executorEnv.{name}": value for name, value in process.items()},
            # Spark allocates what it passes to Python, so Arrow need not check the bounds of every value.
            "spark.executorEnv.ARROW_ENABLE_UNSAFE_MEMORY_ACCESS": "true",
        }

    def _spark_submit(self) -> dict[str, str]:
        for name, value in self.conf.items():
            if re.search(r"\s", value):
                raise ValueError(f"{name} is {value!r}, but EMR splits parameters at blanks; leave them out")
        conf = " ".join(f"--conf {name}={value}" for name, value in self.conf.items())
        return {
            "EntryPoint": self.entry.s3_object_url,
            "SparkSubmitParameters": f"--py-files {self.package.s3_object_url} {conf}",
        }


def requirements_for(release: str) -> str:
    """The file of ``layers/spark`` with the packages that fit the Spark of a release of EMR."""
    return "requirements-3.5.txt" if release.startswith("emr-7.") else "requirements.txt"


def _objects(place: str) -> str:
    """The objects of an input, as ``<bucket>/<prefix>*`` for an ARN."""
    name, _, prefix = place.partition("/")
    return f"{name}/{prefix}*"
