"""Grants permissions, always in the same form: the actions and the one resource are written out."""

from collections.abc import Mapping, Sequence
from typing import cast

from aws_cdk import Names, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from fanin import names
from fanin_cdk.settings import Settings

RECEIVE = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
)


def allow_sending(grantee: iam.IGrantable, queue_arn: str) -> None:
    """Allow a role to send messages to a queue, one at a time and in batches."""
    allow(grantee, ["sqs:SendMessage"], queue_arn)


def allow_channels(
    grantee: iam.IGrantable, *, settings: Settings, look: bool = True, send: bool = True
) -> None:
    """Allow a role to send to all queues with the tag ``fanin:channel``, and to no others.

    Args:
        grantee: the role.
        settings: settings of the deployment; the emulator does not check tags of queues, so there the role
            may use every queue.
        look: whether the role may also look up queues and their tags.
        send: whether it may send; False for a role that only looks.
    """
    _allow_tagged(grantee, names.CHANNEL_TAG, settings=settings, look=look, send=send)


def allow_looking_at_queues(grantee: iam.IGrantable, *, stack: Stack) -> None:
    """Allow a role to read the attributes of every queue of this account and region.

    A queue that is not there has no tag, so a condition on tags would be false for it. Then SQS answers that
    access is denied, and not that the queue does not exist.
    """
    allow(grantee, ["sqs:GetQueueAttributes"], stack.format_arn(service="sqs", resource="*"))


def allow_redriving(grantee: iam.IGrantable, *, settings: Settings) -> None:
    """Allow a role to send to all queues with the tag ``fanin:tracked``: failed messages go back to them.

    The tag allows less than ``fanin:channel``: no scatter, route or registration sends to such a queue.
    """
    _allow_tagged(grantee, names.TRACKED_TAG, settings=settings)


def allow_inspection(grantee: iam.IGrantable, *, settings: Settings) -> None:
    """Allow a role to look at tracked queues and at how their consumers do; it reads no message.

    Lambda and CloudWatch know no resources for these two actions. A queue is tracked if it carries the tag
    ``fanin:tracked`` or ``fanin:channel``; the emulator does not check tags.
    """
    for tag in (names.TRACKED_TAG, names.CHANNEL_TAG):
        allow(grantee, ["sqs:GetQueueAttributes"], "*", _tagged(tag, settings))
    allow(grantee, ["lambda:ListEventSourceMappings", "cloudwatch:GetMetricData"], "*")


def allow_dead_letters(grantee: iam.IGrantable, *, settings: Settings) -> None:
    """Allow a role to empty every queue for dead letters: ``fanin:tracked`` says of it that it is one.

    One statement serves any number of queues, also of other stacks and apps. The policies within a role have
    10,240 characters together, which a statement for each queue would fill. The role may also see whose
    dead-letter queue a tracked queue is, and whether messages may be kept.
    """
    looking = ["sqs:ListDeadLetterSourceQueues", "sqs:ListQueueTags"]
    allow(grantee, looking, "*", _tagged(names.TRACKED_TAG, settings))
    receiving = [action for action in RECEIVE if action != "sqs:ChangeMessageVisibility"]
    allow(grantee, receiving, "*", _tagged(names.TRACKED_TAG, settings, names.DEAD_LETTERS))


def _allow_tagged(
    grantee: iam.IGrantable, tag: str, *, settings: Settings, look: bool = True, send: bool = True
) -> None:
    looking = ["sqs:GetQueueUrl", "sqs:ListQueueTags"] if look else []
    sending = ["sqs:SendMessage"] if send else []
    allow(grantee, [*looking, *sending], "*", _tagged(tag, settings))


def _tagged(tag: str, settings: Settings, value: str = "") -> dict[str, object] | None:
    """The condition that a queue carries a tag, with a value if one is named; the emulator checks no tags."""
    if settings.local:
        return None
    return {"StringEquals" if value else "StringLike": {f"aws:ResourceTag/{tag}": value or "*"}}


def allow(
    grantee: iam.IGrantable,
    actions: Sequence[str],
    resource: str,
    conditions: Mapping[str, object] | None = None,
) -> None:
    """Allow a role some actions on one resource.

    Args:
        grantee: the role, or a function or another construct with a role.
        actions: IAM actions, such as ``sqs:SendMessage``.
        resource: ARN of the resource.
        conditions: conditions of the statement, in the syntax of IAM.
    """
    grantee.grant_principal.add_to_principal_policy(
        iam.PolicyStatement(actions=list(actions), resources=[resource], conditions=conditions)
    )


def policy_beside(
    scope: Construct, id: str, role: iam.IRole, statements: Sequence[iam.PolicyStatement]
) -> iam.Policy:
    """A policy of a role in the stack of another construct, under a name that no other stack uses.

    The CDK names a policy by its path within its stack, and IAM replaces a policy of the role that has the
    same name: the second stack would take away what the first one has granted. See aws-cdk 16074 and 22478.
    """
    policy = iam.Policy(scope, id, roles=[role], statements=list(statements))
    own = cast("iam.CfnPolicy", policy.node.default_child)
    own.policy_name = Names.unique_resource_name(policy, max_length=128)
    return policy
