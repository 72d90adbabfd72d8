"""A customer managed KMS key for everything at rest, and the rights that roles need to use it."""

from typing import Any

import jsii
from aws_cdk import AspectPriority, Aspects, Aws, CfnResource, IAspect
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_emrserverless as emr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secrets
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IConstruct

from fanin_cdk.permissions import allow

USE = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
"""What DynamoDB asks of whoever reads and writes a table; queues, buckets and secrets ask for less.

"Authorizing use of your customer managed key", Amazon DynamoDB Developer Guide.
"""
LOGS_OF_JOBS = ("kms:Decrypt", "kms:GenerateDataKey")
"""What EMR Serverless asks of the role of a job and of whoever starts one, for the logs that it keeps itself.

"Encrypting logs", Amazon EMR Serverless User Guide.
"""
THROUGH = ("dynamodb", "s3", "secretsmanager", "sqs")
"""The services that use the key in the name of a role; by itself, a role can do nothing with it."""
REUSE_SECONDS = 300
"""How long SQS uses a data key; a shorter time costs more calls of KMS."""


@jsii.implements(IAspect)
class CustomerKey:
    """Encrypts tables, queues, buckets, log groups and secrets of a scope with a customer managed key.

    So are the logs that EMR Serverless keeps of jobs. The disks of its workers are not: CloudFormation has
    no property for their key.

    It also allows the roles of the scope to use the key, through these services only. The policy of the key
    must leave that to IAM, and must allow CloudWatch Logs, EventBridge and EMR Serverless: it is in
    docs/reference/settings.md.

    ``FaninTracker`` and ``Pipeline`` apply it by themselves if the settings name a key. Apply it to what you
    have besides, such as the queues and functions of your own stacks.

    Example:
        Everything in an app::

            Aspects.of(app).add(CustomerKey(key_arn))

    Args:
        key_arn: ARN of the key, which must be in the region of the stacks; not of an alias.
    """

    def __init__(self, key_arn: str) -> None:
        self._key = key_arn

    def visit(self, node: IConstruct) -> None:
        """Encrypt a resource, or allow a role; the CDK calls this for each construct of the scope."""
        if isinstance(node, iam.Role):
            allow_key(node, self._key)
        elif isinstance(node, CfnResource):
            self._encrypt(node)

    def _encrypt(self, node: CfnResource) -> None:
        overrides: dict[str, Any] = {}
        if isinstance(node, dynamodb.CfnTable):
            kms = {"KMSMasterKeyId": self._key, "SSEEnabled": True, "SSEType": "KMS"}
            overrides["SSESpecification"] = kms
        elif isinstance(node, sqs.CfnQueue):
            node.add_property_deletion_override("SqsManagedSseEnabled")
            overrides |= {"KmsMasterKeyId": self._key, "KmsDataKeyReusePeriodSeconds": REUSE_SECONDS}
        elif isinstance(node, s3.CfnBucket):
            default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": self._key}
            rule = {"BucketKeyEnabled": True, "ServerSideEncryptionByDefault": default}
            overrides["BucketEncryption"] = {"ServerSideEncryptionConfiguration": [rule]}
        elif isinstance(node, logs.CfnLogGroup | secrets.CfnSecret):
            overrides["KmsKeyId"] = self._key
        elif isinstance(node, emr.CfnApplication):
            kept = "MonitoringConfiguration.ManagedPersistenceMonitoringConfiguration"
            overrides[kept] = {"Enabled": True, "EncryptionKeyArn": self._key}
        for name, value in overrides.items():
            node.add_property_override(name, value)


def encrypt(scope: Construct, key_arn: str) -> None:
    """Encrypt everything in a scope with a key; an empty ARN leaves the keys that AWS manages."""
    if key_arn:
        # Before the checks of cdk-nag, which are to see what is deployed.
        Aspects.of(scope).add(CustomerKey(key_arn), priority=AspectPriority.MUTATING)


def allow_key(grantee: iam.IGrantable, key_arn: str) -> None:
    """Allow a role to use a key through the services that store fanin's data; an empty ARN allows nothing."""
    if not key_arn:
        return
    services = [f"{service}.{Aws.REGION}.amazonaws.com" for service in THROUGH]
    allow(grantee, USE, key_arn, {"StringEquals": {"kms:ViaService": services}})


def allow_logs_of_jobs(grantee: iam.IGrantable, key_arn: str) -> None:
    """Allow a role to run or start jobs whose logs are under a key; an empty ARN allows nothing."""
    if key_arn:
        allow(grantee, LOGS_OF_JOBS, key_arn)
