"""The one way in which this code gives a permission: some actions, one resource, written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import aws_iam as iam

from fanin import names
from infra.settings import Settings


def allow_sending(grantee: iam.IGrantable, queue_arn: str, *, settings: Settings) -> None:
    """Let a role send messages to a queue, one by one and in batches.

    On AWS ``sqs:SendMessage`` covers both; the emulator has an action of its own for batches.
    """
    batches = ["sqs:SendMessageBatch"] if settings.local else []
    allow(grantee, ["sqs:SendMessage", *batches], queue_arn)


def allow_channels(grantee: iam.IGrantable, *, settings: Settings) -> None:
    """Let a role look at and send to the queues of others, those only that carry the tag ``fanin:channel``.

    The emulator does not know the tags of queues when it checks permissions.
    """
    actions = ["sqs:GetQueueUrl", "sqs:ListQueueTags", "sqs:SendMessage"]
    batches = ["sqs:SendMessageBatch"] if settings.local else []
    tagged = None if settings.local else {"StringLike": {f"aws:ResourceTag/{names.CHANNEL_TAG}": "*"}}
    allow(grantee, [*actions, *batches], "*", tagged)


def allow(
    grantee: iam.IGrantable,
    actions: Sequence[str],
    resource: str,
    conditions: Mapping[str, object] | None = None,
) -> None:
    """Let a role do something with one resource.

    Args:
        grantee: a function, a role, or whatever acts as one.
        actions: such as ``sqs:SendMessage``.
        resource: ARN of the resource.
        conditions: of the statement, as IAM writes them.
    """
    grantee.grant_principal.add_to_principal_policy(
        iam.PolicyStatement(actions=list(actions), resources=[resource], conditions=conditions)
    )
