"""Bounded buffers: permissions on the queues that the service creates and users bring, and dead letters."""

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from fanin import names
from fanin_cdk.events import feed_from_queue
from fanin_cdk.findings import accept
from fanin_cdk.functions import TIMEOUT, Function
from fanin_cdk.permissions import allow, allow_channels
from fanin_cdk.queues import plain_queue, six_runs
from fanin_cdk.settings import Settings

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
        dead_letters_function: fails the items of dead letters, which frees their slots, and parks the
            messages.

    Attributes:
        dead_letters: queue for messages of all queues that the service creates.
        environment: variables of a function that serves buffers.
    """

    def __init__(
        self, scope: Construct, id: str, *, settings: Settings, dead_letters_function: Function
    ) -> None:
        super().__init__(scope, id)
        self.dead_letters = plain_queue(
            self, "DeadLetters", visibility_timeout=six_runs(TIMEOUT), enforce_ssl=not settings.local
        )
        accept(self.dead_letters, "SQS3", "it is itself the dead-letter queue of the buffers' queues")
        arn = self.dead_letters.queue_arn
        dead_letters_function.function.add_environment(names.ENV_BUFFER_DEAD_LETTERS_ARN, arn)
        feed_from_queue(
            dead_letters_function,
            self.dead_letters,
            batch_size=10,
            max_concurrency=settings.worker_max_concurrency,
        )
        self._settings = settings
        self._prefix = f"{settings.prefix}-buffer-"
        self.environment = {names.ENV_BUFFER_PREFIX: self._prefix, names.ENV_BUFFER_DEAD_LETTERS_ARN: arn}

    def grant(self, grantee: iam.IGrantable) -> None:
        """Allow a role to serve buffers.

        It may create, configure, tag and delete queues whose names begin with the prefix, and send to,
        receive from and inspect all queues with the tag ``fanin:channel``.
        """
        allow_channels(grantee, settings=self._settings)
        tagged = (
            None if self._settings.local else {"StringLike": {f"aws:ResourceTag/{names.CHANNEL_TAG}": "*"}}
        )
        allow(grantee, TAKE, "*", tagged)
        allow(grantee, MAKE, Stack.of(self).format_arn(service="sqs", resource=f"{self._prefix}*"))
        if isinstance(role := grantee.grant_principal, iam.Role):
            where = f"arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:{self._prefix}*"
            accept(
                role, f"IAM5[Resource::{where}]", "the queues have the names of buffers, which users choose"
            )
