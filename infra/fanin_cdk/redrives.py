"""Redriving failed items: the worker, its queue, and where it may send."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from fanin import names
from fanin_cdk.events import feed_from_queue
from fanin_cdk.functions import Functions
from fanin_cdk.permissions import allow_channels, allow_redriving, allow_sending
from fanin_cdk.scatter import ScatterGather
from fanin_cdk.table_access import REDRIVE

TIMEOUT = 120
"""Seconds for one job, which leaves the rest to the next after ``fanin.app.redrives.redrive.WORK_MS``."""


class Redrives(Construct):
    """What redrives need besides the tables: large ones are done by a worker, a job after the other.

    Attributes:
        jobs: queue of the worker.
        environment: variables of a function that begins redrives.
    """

    def __init__(self, scope: Construct, id: str, *, functions: Functions, scatter: ScatterGather) -> None:
        """Create the queue and the function.

        Args:
            scope: parent construct.
            id: its id there.
            functions: creates functions and queues.
            scatter: has the bucket of large messages.
        """
        super().__init__(scope, id)
        settings = functions.settings
        self.jobs = functions.queue(self, "Jobs", timeout=TIMEOUT)
        self.environment = {names.ENV_REDRIVE_QUEUE_URL: self.jobs.queue.queue_url}
        worker = functions.make(
            "redriver",
            "sends the messages of failed items again",
            REDRIVE,
            environment={**self.environment, names.ENV_CLAIMS_BUCKET: scatter.claims.bucket_name},
            timeout=TIMEOUT,
            memory=1024,
        )
        # A job puts the next one on the same queue, but only after it has got a page further.
        worker.allow_chain()
        feed_from_queue(
            worker, self.jobs.queue, batch_size=1, max_concurrency=settings.worker_max_concurrency
        )
        self.grant_hand_over(worker.function)
        allow_channels(worker.function, settings=settings)
        allow_redriving(worker.function, settings=settings)
        scatter.grant_read(worker.function)
        # A message that its queue refuses is kept again, with the item that it was to do.
        scatter.grant_keep(worker.function)

    def grant_hand_over(self, grantee: iam.IGrantable) -> None:
        """Allow a role to leave redrives to the worker."""
        allow_sending(grantee, self.jobs.queue.queue_arn)
