"""Scatter-gather: the worker that sends, the queue and function for replies, and the claims bucket."""

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from fanin import names
from fanin_cdk.events import feed_from_queue
from fanin_cdk.findings import accept, accept_below
from fanin_cdk.functions import Function, Functions
from fanin_cdk.permissions import allow, allow_channels, allow_sending
from fanin_cdk.schedules import Deadlines
from fanin_cdk.table_access import GATHER, SCATTER

TIMEOUT = 60
"""Seconds for ten jobs of a hundred messages each, or for ten messages with replies."""


class ScatterGather(Construct):
    """What scatters need besides the tables.

    Attributes:
        jobs: queue of the worker.
        replies: queue for replies; each message of a scatter names it.
        claims: bucket for payloads that are too large for a reply. Each is kept at least as long as its
            batch, and up to twice as long.
        environment: variables of a function that starts scatters or takes replies.
    """

    def __init__(self, scope: Construct, id: str, *, functions: Functions) -> None:
        """Create the queues, the bucket and the functions.

        Args:
            scope: parent construct.
            id: its id there.
            functions: creates functions and queues.
        """
        super().__init__(scope, id)
        self._settings = settings = functions.settings
        self.jobs, self.replies = (
            functions.queue(self, name, timeout=TIMEOUT) for name in ("Jobs", "Replies")
        )
        self.claims = self._bucket()
        self.environment = {
            names.ENV_SCATTER_QUEUE_URL: self.jobs.queue.queue_url,
            names.ENV_REPLY_QUEUE_URL: self.replies.queue.queue_url,
            names.ENV_CLAIMS_BUCKET: self.claims.bucket_name,
        }
        worker = functions.make(
            "scatter",
            "sends the messages of scatters",
            SCATTER,
            environment=self.environment,
            timeout=TIMEOUT,
            memory=1024,
        )
        # A job that lists recipients leaves the others to the next one, after at least a hundred of them.
        worker.allow_chain()
        most = settings.worker_max_concurrency
        feed_from_queue(worker, self.jobs.queue, max_concurrency=most)
        allow_channels(worker.function, settings=settings, look=False)
        gatherer = functions.make(
            "replies", "takes replies to scatters", GATHER, environment=self.environment, timeout=TIMEOUT
        )
        feed_from_queue(gatherer, self.replies.queue, max_concurrency=most)
        self._allow_claims(gatherer.function, "s3:GetObject", "s3:PutObject")

    def grant_start(self, grantee: iam.IGrantable) -> None:
        """Allow a role to start scatters and take replies: send jobs to the worker, read and write claims."""
        self.grant_resend(grantee)
        self._allow_claims(grantee, "s3:GetObject", "s3:PutObject")

    def grant_read(self, grantee: iam.IGrantable) -> None:
        """Allow a role to read claims: large messages of failed items are there, too."""
        self._allow_claims(grantee, "s3:GetObject")

    def grant_resend(self, grantee: iam.IGrantable) -> None:
        """Allow a role to send jobs to the worker."""
        allow_sending(grantee, self.jobs.queue.queue_arn)

    def grant_keep(self, grantee: iam.IGrantable) -> None:
        """Allow a role to store messages of failed items that are too large for a row."""
        self._allow_claims(grantee, "s3:PutObject")

    def grant_forget(self, grantee: iam.IGrantable) -> None:
        """Allow a role to delete the messages of failed items."""
        self._allow_claims(grantee, "s3:DeleteObject")

    def grant_reply(self, grantee: iam.IGrantable) -> None:
        """Allow a role to send replies to the reply queue."""
        allow_sending(grantee, self.replies.queue.queue_arn)

    def grant_postpone(self, function: Function, deadlines: Deadlines) -> None:
        """Allow a function that handles deadlines to postpone that of a scatter, and to send its jobs again.

        Also sets the variables that the function needs for it.
        """
        deadlines.grant_set(function.function)
        self.grant_resend(function.function)
        url = self.jobs.queue.queue_url
        for name, value in {**deadlines.environment, names.ENV_SCATTER_QUEUE_URL: url}.items():
            function.function.add_environment(name, value)

    def _bucket(self) -> s3.Bucket:
        settings = self._settings
        bucket = s3.Bucket(
            self,
            "Claims",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=not settings.local,
            lifecycle_rules=[
                # None depends on the setting lifetime: scatters may run that began under a longer one.
                *(
                    s3.LifecycleRule(prefix=names.CLAIM_PREFIX.format(days), expiration=Duration.days(days))
                    for days in names.CLAIM_DAYS
                ),
                s3.LifecycleRule(
                    expiration=Duration.days(names.CLAIM_DAYS[-1]),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                ),
            ],
            removal_policy=settings.removal_policy,
        )
        accept(bucket, "S1", "the API signs every URL, and its access log records for whom")
        if settings.local:
            accept(bucket, "S10", "it is for an emulator, which serves plain HTTP")
        return bucket

    def _allow_claims(self, grantee: iam.IGrantable, *actions: str) -> None:
        allow(grantee, actions, self.claims.arn_for_objects("*"))
        if isinstance(role := grantee.grant_principal, iam.Role):
            reason = "the objects have the names of replies and of failed items"
            accept_below(role, self.claims, self.claims.bucket_arn, "/*", reason)
