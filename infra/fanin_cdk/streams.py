"""The functions that read the ledger's streams, the notifier and the settler, with their retry queues."""

from aws_cdk import aws_events as events
from constructs import Construct

from fanin import names
from fanin_cdk.events import (
    BATCH_ENDED,
    BATCH_PROGRESSED,
    BATCH_REMOVED,
    BATCH_TOLD,
    MOST_PARALLEL,
    WORD_FINISHED,
    feed_from_stream,
)
from fanin_cdk.functions import Functions
from fanin_cdk.permissions import allow, allow_channels
from fanin_cdk.queues import RedrivenQueue
from fanin_cdk.schedules import Deadlines
from fanin_cdk.table_access import NOTIFY, SETTLE


def stream_readers(
    scope: Construct, *, functions: Functions, bus: events.EventBus, deadlines: Deadlines
) -> dict[str, RedrivenQueue]:
    """Create the notifier on the stream of batches, and the settler on the stream of words.

    The notifier may also put events on the bus, send to queues with the tag ``fanin:channel``, and delete the
    schedules of deadlines.

    Args:
        scope: the tracker.
        functions: creates functions and queues.
        bus: bus on which the ends of batches are announced.
        deadlines: the schedules for deadlines.

    Returns:
        Name of the function → queue of stream records that failed once.
    """
    settings, storage = functions.settings, functions.storage
    retries = {name: functions.queue(scope, f"{name.title()}Retries") for name in ("notifier", "settler")}
    notifier = functions.make(
        "notifier",
        "announces on the bus how a batch ended, and marks its parent item",
        NOTIFY,
        environment={
            **deadlines.environment,
            names.ENV_BUS: bus.event_bus_arn,
            names.ENV_RETRY_QUEUE_URL: retries["notifier"].queue.queue_url,
        },
    )
    allow(notifier.function, ["events:PutEvents"], bus.event_bus_arn)
    allow_channels(notifier.function, settings=settings, look=False)
    deadlines.grant_clear(notifier.function)
    # A batch ends once and is removed once, and both are announced alike in any order.
    feed_from_stream(
        notifier,
        storage.batches,
        [BATCH_ENDED, BATCH_REMOVED, *BATCH_TOLD, BATCH_PROGRESSED],
        retries["notifier"],
        parallel=MOST_PARALLEL,
    )
    settler = functions.make(
        "settler",
        "carries finished words up the tree, in case their writer crashed",
        SETTLE,
        environment={names.ENV_RETRY_QUEUE_URL: retries["settler"].queue.queue_url},
    )
    feed_from_stream(settler, storage.words, [WORD_FINISHED], retries["settler"])
    return retries
