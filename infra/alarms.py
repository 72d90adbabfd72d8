"""Alarms: what somebody should look at, because fanin does not put it right by itself."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fanin import names
from infra.api import Api
from infra.events import STREAM_READERS
from infra.functions import Function
from infra.settings import Settings

PERIOD = Duration.minutes(5)
LATE = Duration.minutes(15)


class Alarms(Construct):
    """The alarms of one tracker; they tell the topic of the settings, if there is one."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        api: Api,
        functions: Mapping[str, Function],
        dead_ends: Mapping[str, sqs.IQueue],
        drained: Mapping[str, sqs.IQueue],
    ) -> None:
        """Make the alarms.

        Args:
            scope: where they belong.
            id: their name there.
            settings: the deployment's settings.
            api: its faults raise an alarm.
            functions: their errors do, and the delay of those that read a stream.
            dead_ends: queues in which a single message is one too many.
            drained: queues that a function should keep empty.
        """
        super().__init__(scope, id)
        topic = settings.alarm_topic_arn
        self._action = actions.SnsAction(sns.Topic.from_topic_arn(self, "Topic", topic)) if topic else None
        for name, queue in dead_ends.items():
            visible = queue.metric_approximate_number_of_messages_visible(period=PERIOD, statistic="Maximum")
            self._raise(f"{name}Dead", visible, 1, f"{name}: messages that failed for good wait here")
        for name, queue in drained.items():
            age = queue.metric_approximate_age_of_oldest_message(period=PERIOD, statistic="Maximum")
            self._raise(f"{name}Late", age, int(LATE.to_seconds()), f"{name}: messages wait too long")
        for name, function in functions.items():
            errors = function.function.metric_errors(period=PERIOD, statistic="Sum")
            self._raise(f"{name}Errors", errors, 1, f"function {name} fails again and again", periods=2)
        for name in STREAM_READERS:
            age = functions[name].function.metric("IteratorAge", period=PERIOD, statistic="Maximum")
            self._raise(f"{name}Behind", age, 60_000, f"function {name} is a minute behind its stream")
        faults = api.api.metric_server_error(period=PERIOD, statistic="Sum")
        self._raise("ApiFaults", faults, 5, "the API answers with faults")
        self._raise(
            "Stuck",
            cloudwatch.Metric(
                namespace=names.METRICS_NAMESPACE,
                metric_name=names.METRIC_STUCK,
                dimensions_map={"service": settings.prefix},
                period=Duration.minutes(settings.reaper_rate_minutes),
                statistic="Maximum",
            ),
            1,
            "closed batches were given up, since the rest of their items was never acked",
        )

    def _raise(
        self,
        id: str,
        metric: cloudwatch.IMetric,
        threshold: int,
        description: str,
        *,
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
            alarm_description=f"fanin: {description}",
        )
        if self._action:
            alarm.add_alarm_action(self._action)
