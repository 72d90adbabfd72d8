"""The dashboard, from what users notice down to the tables."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from fanin import names
from fanin_cdk.events import STREAM_READERS
from fanin_cdk.watched import Watched, metric_of

WIDTH = 8
PERIOD = Duration.minutes(1)
ENDS = (names.METRIC_ENDED, names.METRIC_SETTLED, names.METRIC_ORPHANED, names.METRIC_TIMED_OUT)
ITEMS = (
    names.METRIC_FIRST,
    names.METRIC_DUPLICATE,
    names.METRIC_LATE,
    names.METRIC_FAILED,
    names.METRIC_HELD,
    names.METRIC_RELEASED,
)
TROUBLE = (
    names.METRIC_STALLED,
    names.METRIC_STUCK,
    names.METRIC_UNREAPED,
    names.METRIC_PARKED,
    names.METRIC_POSTPONED,
)
FRAMES = (
    names.METRIC_FRAMES_OPENED,
    names.METRIC_FRAMES_COMPLETED,
    names.METRIC_FRAMES_TIMED_OUT,
    names.METRIC_REPEATS,
)
SCATTERS = (names.METRIC_SENT, names.METRIC_UNREACHED, names.METRIC_REPLIES)
TARGETS = (names.METRIC_TARGETS_DELIVERED, names.METRIC_TARGETS_FAILED, names.METRIC_TARGETS_PARKED)
EVENTS = (names.METRIC_ROUTED, names.METRIC_UNROUTED, names.METRIC_REFUSED, names.METRIC_DROPPED)


class Dashboard(Construct):
    """One page for one tracker: batches and items, patterns, API, functions, queues and tables.

    Args:
        scope: parent construct.
        id: its id there.
        watched: what to show.
    """

    def __init__(self, scope: Construct, id: str, watched: Watched) -> None:
        super().__init__(scope, id)
        self._watched = watched
        lambdas = {name: function.function for name, function in watched.functions.items()}
        http, queues, tables = watched.api.api, watched.queues, watched.tables
        # Consumers write it, which do not know the tracker's name.
        skipped = metric_of(names.CONSUMERS, names.METRIC_SKIPPED)
        rows = (
            (
                _graph("Items a minute, messages skipped", [*self._own(ITEMS), skipped]),
                _graph("Batches ended", self._own(ENDS)),
                _graph("Stuck and parked", self._own(TROUBLE)),
            ),
            (
                _graph("Slots of buffers in use", self._own((names.METRIC_BUFFER_DEPTH,), "Maximum")),
                _graph(
                    "Puts that buffers rejected, buffers that cannot be read",
                    self._own((names.METRIC_BUFFER_REJECTS, names.METRIC_BUFFERS_UNREADABLE)),
                ),
                _graph("Milliseconds in a buffer, p99", self._own((names.METRIC_BUFFER_WAIT,), "p99")),
            ),
            (
                _graph("Events routed, registrations dropped", self._own(EVENTS)),
                _graph("Recipients, replies, targets called back", self._own((*SCATTERS, *TARGETS))),
                _graph("Frames, repeats requested", self._own(FRAMES)),
            ),
            (
                _graph("API requests", [http.metric_count(), http.metric_client_error()]),
                _graph("API faults", [http.metric_server_error()]),
                _graph("API latency", [http.metric_latency(statistic=p) for p in ("p50", "p99")]),
            ),
            (
                _graph("Runs", [f.metric_invocations(label=name) for name, f in lambdas.items()]),
                _graph("Errors", [f.metric_errors(label=name) for name, f in lambdas.items()]),
                _graph(
                    "Duration, p99", [f.metric_duration(label=n, statistic="p99") for n, f in lambdas.items()]
                ),
            ),
            (
                _graph(
                    "Behind the stream",
                    [
                        lambdas[name].metric("IteratorAge", label=name, statistic="Maximum")
                        for name in STREAM_READERS
                    ],
                ),
                _graph(
                    "Messages waiting",
                    [
                        queue.metric_approximate_number_of_messages_visible(label=name, statistic="Maximum")
                        for name, queue in queues.items()
                    ],
                ),
                _graph(
                    "Oldest message, seconds",
                    [
                        queue.metric_approximate_age_of_oldest_message(label=name, statistic="Maximum")
                        for name, queue in queues.items()
                    ],
                ),
            ),
            tuple(
                _graph(title, [table.metric(metric, label=n, statistic="Sum") for n, table in tables.items()])
                for title, metric in (
                    ("Write units", "ConsumedWriteCapacityUnits"),
                    ("Read units", "ConsumedReadCapacityUnits"),
                    ("Conditions that failed", "ConditionalCheckFailedRequests"),
                )
            ),
        )
        cloudwatch.Dashboard(self, "Page", widgets=[list(row) for row in rows])

    def _own(self, metrics: tuple[str, ...], statistic: str = "Sum") -> list[cloudwatch.IMetric]:
        return [self._watched.metric(metric, statistic) for metric in metrics]


def _graph(title: str, metrics: list[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=metrics, width=WIDTH, period=PERIOD)
