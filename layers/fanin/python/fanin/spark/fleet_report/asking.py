"""Asks the vehicles of fleets by scatter-gather, and tells of each what it said, or that it said nothing.

One scatter a fleet, to the fleet's topic in the directory. Its idempotency key is made of the report's key
and the fleet, so a report that is run again, or whose driver died, finds the scatter that there is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from fanin.app.ledger.service import LedgerService
from fanin.app.scatters.records import read_names
from fanin.client.tracker import Tracker
from fanin.domain.limits import MAX_PAGE
from fanin.domain.reports import MissingRange
from fanin.spark.runtime.service import Service

TYPE: Final = "Fleet Report"
"""The message's type, in its attribute ``fanin-type``."""
POLL: Final = 0.5
GRACE: Final = 60
"""Seconds that an end may be late: alarms ring to the minute."""

ANSWERED: Final = "answered"
FAILED: Final = "failed"
SILENT: Final = "silent"

PAYLOAD: Final = StructType([StructField("odometer_m", LongType()), StructField("status", StringType())])
"""What is read of a reply's payload, a JSON object; all of it may be left out."""

ANSWERS: Final = StructType(
    [
        StructField("fleet", StringType()),
        StructField("vehicle", StringType()),
        StructField("answer", StringType()),
        StructField("detail", StringType()),
        StructField("replied_at", TimestampType()),
        StructField("odometer_m", LongType()),
        StructField("status", StringType()),
        StructField("payload", StringType()),
    ]
)
"""``answer``: ``answered``, ``failed`` or ``silent``; ``detail``: why it failed, or where its payload is;
``payload``: the reply as JSON."""

_GATHERED: Final = StructType(
    [*ANSWERS.fields[:4], StructField("replied_ms", LongType()), StructField("payload", StringType())]
)
_ARROW: Final = pa.schema(
    [
        (field.name, pa.int64() if isinstance(field.dataType, LongType) else pa.string())
        for field in _GATHERED.fields
    ]
)


class Asking(NamedTuple):
    """How fleets are asked.

    Attributes:
        key: of the report; the same key and fleet find the same scatter.
        topic: of a fleet in the directory, with ``{fleet}`` for its name.
        timeout: seconds until who did not answer is asked again, or given up.
        max_retries: how often it is asked again.
    """

    key: str
    topic: str = "{fleet}"
    timeout: int = 120
    max_retries: int = 2


class Asked(NamedTuple):
    """A fleet that was asked: the scatter's batch id, how many were asked, and how it went."""

    fleet: str
    batch_id: int
    recipients: int
    received: int
    failed: int
    ready: bool


Row: TypeAlias = dict[str, Any]


def ask(tracker: Tracker, fleets: Sequence[str], how: Asking, body: Mapping[str, object]) -> list[Asked]:
    """Ask all fleets, and wait until nothing more is waited for.

    Args:
        tracker: starts the scatters.
        fleets: by name, few.
        how: to ask.
        body: of the message, as JSON, to which the fleet is added; the same whenever the key is.

    Returns:
        One for each fleet. One that is not ready has outlived its deadlines without ending, and its counts
        are those so far.
    """
    started = {
        fleet: tracker.scatters.start(
            how.topic.format(fleet=fleet),
            {"fleet": fleet, **body},
            type=TYPE,
            key=f"{how.key}/{fleet}",
            correlation_id=f"{how.key}/{fleet}",
            timeout=how.timeout,
            max_retries=how.max_retries,
            user_key=f"{how.key}/{fleet}"[:256],
        ).batch.batch_id
        for fleet in fleets
    }
    until = time.monotonic() + how.timeout * (1 + how.max_retries) + GRACE
    for batch_id in started.values():
        while not tracker.status(batch_id).batch.state.terminal and time.monotonic() < until:
            time.sleep(POLL)
    return [_asked(tracker, fleet, batch_id) for fleet, batch_id in started.items()]


def gathered(spark: SparkSession, asked: Sequence[Asked], service: Service) -> DataFrame:
    """What every vehicle that was asked has said. Each task reads one fleet, a page at a time.

    Args:
        spark: the session.
        asked: of ``ask``.
        service: the stack, for the tasks.

    Returns:
        Of ``ANSWERS``, a row for each recipient.
    """

    def read(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ledger, tracker = service.ledger(), service.tracker()
        for page in pages:
            for fleet, batch_id in zip(page["fleet"].to_pylist(), page["batch_id"].to_pylist(), strict=True):
                for rows in _answers(ledger, tracker, fleet, batch_id):
                    yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    scatters = spark.createDataFrame(
        [(one.fleet, one.batch_id) for one in asked], "fleet string, batch_id bigint"
    )
    found = scatters.repartition(max(1, len(asked)), "batch_id").mapInArrow(read, _GATHERED)
    best = Window.partitionBy("fleet", "vehicle").orderBy("answer")  # an answer goes before silence
    said = F.from_json("payload", PAYLOAD)
    return (
        found.withColumn("_nth", F.row_number().over(best))
        .where("_nth = 1")
        .select(
            *("fleet", "vehicle", "answer", "detail"),
            F.timestamp_millis("replied_ms").alias("replied_at"),
            said["odometer_m"].alias("odometer_m"),
            said["status"].alias("status"),
            "payload",
        )
    )


def nobody(spark: SparkSession) -> DataFrame:
    """Of ``ANSWERS``, where nobody is asked."""
    return spark.createDataFrame([], ANSWERS)


def _asked(tracker: Tracker, fleet: str, batch_id: int) -> Asked:
    now = tracker.scatters.status(batch_id)
    return Asked(fleet, batch_id, now.batch.items, now.received, now.failed, now.ready)


def _answers(ledger: LedgerService, tracker: Tracker, fleet: str, batch_id: int) -> Iterator[list[Row]]:
    """Pages of rows: who is missing, then who failed, then who answered.

    In this order, since a vehicle may answer while this is read: it is there twice then, and would be nowhere
    in the other.
    """

    def row(vehicle: str, answer: str, **more: Any) -> Row:
        return {"fleet": fleet, "vehicle": vehicle, "answer": answer, **more}

    records = ledger.ports.records
    cursor: str | None = None
    while True:
        missing = ledger.missing(batch_id, cursor=cursor, limit=MAX_PAGE)
        for ordinals in _some(missing.ranges):
            yield [row(name, SILENT) for name in read_names(records, batch_id, ordinals).values()]
        if (cursor := missing.cursor) is None:
            break
    while True:
        failures = ledger.failures(batch_id, cursor=cursor, limit=MAX_PAGE)
        named = read_names(records, batch_id, [one.ordinal for one in failures.failures])
        yield [row(named[one.ordinal], FAILED, detail=one.reason) for one in failures.failures]
        if (cursor := failures.cursor) is None:
            break
    while True:
        replies = tracker.scatters.replies_page(batch_id, cursor=cursor)
        yield [
            row(
                reply.name,
                ANSWERED,
                replied_ms=reply.replied_at,
                payload=None if reply.payload is None else json.dumps(reply.payload, sort_keys=True),
                detail=reply.claim,
            )
            for reply in replies.replies
        ]
        if (cursor := replies.cursor) is None:
            break


def _some(ranges: Iterable[MissingRange]) -> Iterator[list[int]]:
    """The ordinals of ranges, at most a page at a time: a range may be as long as its batch."""
    for one in ranges:
        for start in range(one.start, one.stop, MAX_PAGE):
            yield list(range(start, min(start + MAX_PAGE, one.stop)))
