"""Alarms on everything that fanin does not repair by itself.

CloudWatch charges for each metric that an alarm looks at, also within metric math, so there are as few as
cover everything: a function has an alarm on its errors only if nothing else tells of them soon.
"""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from fanin import names
from fanin_cdk.events import STREAM_READERS
from fanin_cdk.watched import Watched

PERIOD = Duration.minutes(5)
LATE = Duration.minutes(15)
"""Age of the oldest message at which a queue counts as late.

SQS leaves out messages that were received three times and not deleted, so the age only tells whether a
function keeps up with new messages. See "Available CloudWatch metrics for Amazon SQS".
"""
POSTPONED = Duration.minutes(20)
"""Period in which every message that keeps being postponed is counted; it pauses for 15 minutes at most."""
IN_FLIGHT = 100_000
"""Received and postponed messages of a queue; at about 120,000 SQS hands out no more, and gives no error."""
BEHIND = Duration.minutes(1)
"""Age of the last record read at which a function counts as behind its stream."""
TRIED_FOR_LONG = ("acks", "dead_letters", "targets", "redriver")
"""Functions whose messages come again for hours, for a day, or for ever.

What fails in any other function is in a dead-letter queue within the hour; the API answers with 5xx.
"""
RUNBOOKS = "docs/reference/alarms.md"
"""The page with a section for each alarm, which its description names."""
FAULTS = 5
"""Answers of the API with a 5xx status, within one period."""


class Alarms(Construct):
    """The alarms of one tracker; they notify the SNS topic of the settings, if there is one.

    Args:
        scope: parent construct.
        id: its id there.
        watched: what to watch.
    """

    def __init__(self, scope: Construct, id: str, watched: Watched) -> None:
        super().__init__(scope, id)
        topic = watched.settings.alarm_topic_arn
        self._action = actions.SnsAction(sns.Topic.from_topic_arn(self, "Topic", topic)) if topic else None
        for name, queue in watched.dead_ends.items():
            visible = queue.metric_approximate_number_of_messages_visible(period=PERIOD, statistic="Maximum")
            self._raise(
                f"{name}Dead",
                visible,
                1,
                f"{name}: messages that failed for good are in this queue",
                runbook="dead-letters",
            )
        for name, queue in watched.drained.items():
            age = queue.metric_approximate_age_of_oldest_message(period=PERIOD, statistic="Maximum")
            self._raise(
                f"{name}Late",
                age,
                int(LATE.to_seconds()),
                f"{name}: the oldest message is 15 minutes old, leaving out those that were received three"
                " times",
                runbook="late",
            )
        for name, queue in watched.postponing.items():
            hidden = queue.metric_approximate_number_of_messages_not_visible(
                period=PERIOD, statistic="Maximum"
            )
            self._raise(
                f"{name}InFlight",
                hidden,
                IN_FLIGHT,
                f"{name}: 100,000 messages are in flight or postponed; at 120,000 SQS hands out no more",
                runbook="in-flight",
            )
        self._raise(
            "Postponed",
            watched.metric(names.METRIC_POSTPONED, period=POSTPONED),
            1,
            "for 40 minutes, messages with acknowledgements or dead messages have been postponed, since the"
            " tables throttle or time was up",
            runbook="postponed",
            periods=2,
        )
        self._raise(
            "TargetsParked",
            watched.metric(names.METRIC_TARGETS_PARKED, period=PERIOD),
            1,
            "a target was tried for a day, or refuses for good: `fanin targets BATCH` says why",
            runbook="targets-parked",
        )
        for name in TRIED_FOR_LONG:
            errors = watched.functions[name].function.metric_errors(period=PERIOD, statistic="Sum")
            self._raise(
                f"{name}Errors", errors, 1, f"function {name} keeps failing", runbook="errors", periods=2
            )
        for name in STREAM_READERS:
            age = watched.functions[name].function.metric("IteratorAge", period=PERIOD, statistic="Maximum")
            self._raise(
                f"{name}Behind",
                age,
                int(BEHIND.to_milliseconds()),
                f"function {name} is a minute behind its stream",
                runbook="behind",
            )
        faults = watched.api.api.metric_server_error(period=PERIOD, statistic="Sum")
        self._raise("ApiFaults", faults, FAULTS, "the API answers with 5xx errors", runbook="api-faults")
        self._raise(
            "Stuck",
            _of_the_reaper(names.METRIC_STUCK, watched),
            1,
            "closed batches were orphaned: some of their items were never acknowledged",
            runbook="stuck",
        )
        self._raise(
            "Stalled",
            _of_the_reaper(names.METRIC_STALLED, watched),
            1,
            "batches have had no activity for long, and nothing is in flight: `fanin why` and the event Batch"
            " Stalled say why",
            runbook="stalled",
        )
        self._raise(
            "Unreaped",
            _of_the_reaper(names.METRIC_UNREAPED, watched),
            1,
            "the reaper keeps failing on a batch: its log names the batch and the reason",
            runbook="unreaped",
            periods=2,
        )

    def _raise(
        self,
        id: str,
        metric: cloudwatch.IMetric,
        threshold: int,
        description: str,
        *,
        runbook: str,
        periods: int = 1,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            id,
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=f"fanin: {description} (what to do: {RUNBOOKS}#{runbook})",
        )
        if self._action:
            alarm.add_alarm_action(self._action)


def _of_the_reaper(metric: str, watched: Watched) -> cloudwatch.Metric:
    """A metric that a run of the reaper writes once, unless it is zero."""
    return watched.metric(metric, "Maximum", Duration.minutes(watched.settings.reaper_rate_minutes))
