"""Permissions for bounded buffers: on the queues that the service creates, and on those that users bring."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from fanin import names
from infra.findings import accept
from infra.permissions import allow, allow_channels
from infra.settings import Settings

TAKE = ("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
MAKE = (
    "sqs:CreateQueue",
    "sqs:DeleteQueue",
    "sqs:GetQueueAttributes",
    "sqs:SetQueueAttributes",
    "sqs:TagQueue",
)


class Buffers(Construct):
    """The queues of bounded buffers; the service creates and deletes them at run time.

    Args:
        scope: parent construct.
        id: its id there.
        settings: settings of the deployment; names of queues begin with ``<prefix>-buffer-``.

    Attributes:
        environment: variables of a function that serves buffers.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        self._settings = settings
        self._prefix = f"{settings.prefix}-buffer-"
        self.environment = {names.ENV_BUFFER_PREFIX: self._prefix}

    def grant(self, grantee: iam.IGrantable) -> None:
        """Allow a role to serve buffers.

        It may create, configure, tag and delete queues whose names begin with the prefix, and send to,
        receive from and inspect all queues with the tag ``fanin:channel``.
        """
        allow_channels(grantee, settings=self._settings)
        batches = ["sqs:DeleteMessageBatch"] if self._settings.local else []
        tagged = (
            None if self._settings.local else {"StringLike": {f"aws:ResourceTag/{names.CHANNEL_TAG}": "*"}}
        )
        allow(grantee, [*TAKE, *batches], "*", tagged)
        allow(grantee, MAKE, Stack.of(self).format_arn(service="sqs", resource=f"{self._prefix}*"))
        if isinstance(role := grantee.grant_principal, iam.Role):
            where = f"arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:{self._prefix}*"
            accept(
                role, f"IAM5[Resource::{where}]", "the queues have the names of buffers, which users choose"
            )
