"""The reaper, which settles and ends batches that are idle or overdue, and the rate at which it runs."""

from aws_cdk import aws_events as events
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fanin import names
from fanin_cdk.functions import Functions
from fanin_cdk.permissions import allow, allow_channels, allow_inspection
from fanin_cdk.scatter import ScatterGather
from fanin_cdk.schedules import Deadlines, Rate
from fanin_cdk.table_access import REAP

TIMEOUT = 300
"""Seconds of one run, which takes the longest due first; the next run does the rest."""


def reaper_at_a_rate(
    scope: Construct,
    *,
    functions: Functions,
    bus: events.EventBus,
    deadlines: Deadlines,
    scatter: ScatterGather,
) -> sqs.Queue:
    """Create the reaper and its schedule.

    It may also put events on the bus, postpone deadlines of scatters, send to queues with the tag
    ``fanin:channel``, and read what ``fanin why`` reads of queues and functions.

    Args:
        scope: the tracker.
        functions: creates functions and queues.
        bus: bus on which stalls are announced.
        deadlines: the schedules for deadlines.
        scatter: scatters, whose deadlines it may postpone.

    Returns:
        The queue for its invocations that failed for good.
    """
    settings, dead_letters = functions.settings, functions.dead_end(scope, "ReaperDeadLetters")
    reaper = functions.make(
        "reaper",
        "settles and ends batches that are idle or overdue",
        REAP,
        environment={names.ENV_BUS: bus.event_bus_arn},
        timeout=TIMEOUT,
        on_failure=dead_letters,
    )
    allow(reaper.function, ["events:PutEvents"], bus.event_bus_arn)
    allow_inspection(reaper.function, settings=settings)
    scatter.grant_postpone(reaper, deadlines)
    allow_channels(reaper.function, settings=settings, look=False)
    Rate(
        scope, "ReaperRate", function=reaper, minutes=settings.reaper_rate_minutes, dead_letters=dead_letters
    )
    return dead_letters
