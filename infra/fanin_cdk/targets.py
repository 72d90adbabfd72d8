"""Targets: the queue of jobs, and the function that calls back whoever waits for the end of a batch."""

import string
from typing import cast

from aws_cdk import CfnResource, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secrets
from constructs import Construct

from fanin import names
from fanin_cdk.events import feed_from_queue
from fanin_cdk.findings import accept
from fanin_cdk.functions import Function, Functions
from fanin_cdk.permissions import allow, allow_channels, allow_sending
from fanin_cdk.table_access import DELIVER

MOST_AT_ONCE = 100
"""How many targets are called at a time, unless ``worker_max_concurrency`` says otherwise.

A webhook that does not answer holds an invocation for ten seconds. Without a bound, Lambda would give such
webhooks up to 1,000 invocations at a time, which is all that an account has for all of its functions by
default. See "Lambda quotas", AWS Lambda Developer Guide.
"""
SECRET_LENGTH = 44
"""Characters of the generated secret; letters and digits are base64 too, so this is 33 bytes."""


class Targets(Construct):
    """What targets need besides the tables.

    Attributes:
        jobs: queue of the function, one message for each target of a batch that has ended.
        secret: signs webhooks; None if the settings allow no hosts.
        environment: variables of a function or a library user that opens batches.
    """

    def __init__(self, scope: Construct, id: str, *, functions: Functions) -> None:
        """Create the queue and the function, and the secret if webhooks are allowed.

        Args:
            scope: parent construct.
            id: its id there.
            functions: creates functions and queues.
        """
        super().__init__(scope, id)
        self._settings = settings = functions.settings
        self.jobs = functions.queue(self, "Jobs", tries=names.TARGET_TRIES)
        self.secret = self._secret() if settings.webhook_hosts else None
        self.environment = {names.ENV_TARGETS_QUEUE_URL: self.jobs.queue.queue_url}
        function = functions.make("targets", "calls back whoever waits for the end of a batch", DELIVER)
        # One at a time: a target that takes its ten seconds must not hold up the next one.
        feed_from_queue(
            function,
            self.jobs.queue,
            batch_size=1,
            max_concurrency=settings.worker_max_concurrency or MOST_AT_ONCE,
        )
        # Queues were looked up when the batch was opened.
        allow_channels(function.function, settings=settings, look=False)
        # Neither takes the ARN of what waits: the token and the id are the permission.
        allow(function.function, ["states:SendTaskFailure", "states:SendTaskSuccess"], "*")
        callbacks = ("Failure", "Success")
        allow(function.function, [f"lambda:SendDurableExecutionCallback{end}" for end in callbacks], "*")
        if self.secret is not None:
            # The attribute Id is the ARN on AWS, and on the emulator, too; there Ref is the name.
            arn = Token.as_string(cast("CfnResource", self.secret.node.default_child).get_att("Id"))
            allow(function.function, ["secretsmanager:GetSecretValue"], arn)
            function.function.add_environment(names.ENV_WEBHOOK_SECRET_ARN, arn)
        if settings.local:
            function.function.add_environment(names.ENV_WEBHOOK_LOOPBACK, "true")

    def feed_by(self, function: Function) -> None:
        """Let a function put jobs on the queue, and tell it where the queue is."""
        self.grant_redeliver(function.function)
        function.function.add_environment(names.ENV_TARGETS_QUEUE_URL, self.jobs.queue.queue_url)

    def grant_redeliver(self, grantee: iam.IGrantable) -> None:
        """Allow a role to have targets told again."""
        allow_sending(grantee, self.jobs.queue.queue_arn)

    def _secret(self) -> secrets.Secret:
        secret = secrets.Secret(
            self,
            "WebhookSecret",
            description="fanin: signs webhooks as Standard Webhooks say; receivers need it, as whsec_<value>",
            generate_secret_string=secrets.SecretStringGenerator(
                # The characters are named, too, since the emulator knows no other way to leave them out.
                exclude_characters=string.punctuation,
                exclude_punctuation=True,
                include_space=False,
                password_length=SECRET_LENGTH,
            ),
            removal_policy=self._settings.removal_policy,
        )
        accept(
            secret,
            "SMG4",
            "receivers share it, so it changes when they are ready; docs/how-to/targets.md says how",
        )
        return secret
