"""The queue for acknowledgements that need no answer, and the function that it feeds."""

from constructs import Construct

from fanin import names
from fanin_cdk.events import feed_from_queue
from fanin_cdk.functions import ONE_PROCESSOR, Functions
from fanin_cdk.permissions import allow_sending
from fanin_cdk.queues import RedrivenQueue
from fanin_cdk.table_access import ACK

TIMEOUT = 120
"""Seconds that one invocation may take for a full batch of acknowledgements.

Lambda hands over at most 6 MB, about 120,000 ids; if all are of different words, these are as many writes.
docs/reference/settings.md says how long they take.
"""


def ack_queue(scope: Construct, *, functions: Functions) -> RedrivenQueue:
    """Create the ack queue and its function.

    The function may also send to the queue and to its dead-letter queue.

    Args:
        scope: the tracker.
        functions: creates functions and queues.
    """
    settings = functions.settings
    function = functions.make(
        "acks",
        "marks items done, for messages of the ack queue",
        ACK,
        timeout=TIMEOUT,
        memory=ONE_PROCESSOR,
        reserved=settings.ack_reserved_concurrency,
    )
    acks = functions.queue(scope, "AckQueue", timeout=TIMEOUT, tries=names.ACK_TRIES)
    function.function.add_environment(names.ENV_RETRY_QUEUE_URL, acks.dead_letters.queue_url)
    allow_sending(function.function, acks.dead_letters.queue_arn)
    # What is left of a message that was marked in part goes back as a new message, which names less.
    function.allow_chain()
    allow_sending(function.function, acks.queue.queue_arn)
    feed_from_queue(
        function,
        acks.queue,
        batch_size=settings.ack_batch_size,
        window_seconds=settings.ack_batching_window_seconds,
        max_concurrency=settings.ack_max_concurrency,
    )
    return acks
