"""Asks the vehicles of fleets by scatter-gather, and collects their answers, silence included.

Each fleet gets one scatter, to the fleet's topic in the directory. Its idempotency key is made of the key of
the report and the fleet, so a report that is run again, for example after its driver died, finds it.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from fanin import Tracker
from fanin.spark import Service

TYPE: Final = "Fleet Report"
"""The message's type, in its attribute ``fanin-type``."""
POLL: Final = 0.5
"""Seconds between two looks at a scatter."""
GRACE: Final = 60
"""Seconds that the end of a scatter may be late, since alarms ring to the minute."""

ANSWERED: Final = "answered"
FAILED: Final = "failed"
SILENT: Final = "silent"

PAYLOAD: Final = StructType([StructField("odometer_m", LongType()), StructField("status", StringType())])
"""What the report reads of a reply's payload, a JSON object; the payload may lack any of it."""

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
"""``answer`` is ``answered``, ``failed`` or ``silent``; ``detail`` says why it failed, or where its payload
is; ``payload`` is the reply as JSON."""

_GATHERED: Final = pa.schema(
    [
        *((field.name, pa.string()) for field in ANSWERS.fields[:4]),
        ("replied_ms", pa.int64()),
        ("payload", pa.string()),
    ]
)
_GATHERED_DDL: Final = (
    "fleet string, vehicle string, answer string, detail string, replied_ms bigint, payload string"
)
_AT_ONCE: Final = 1_000
"""Vehicles in a page that a task gives to Spark."""


class AskOptions(NamedTuple):
    """How to ask fleets.

    Attributes:
        key: of the report; the same key and fleet find the same scatter.
        topic: of a fleet in the directory, with ``{fleet}`` for its name.
        timeout: seconds until vehicles that did not answer are asked again, or given up.
        max_retries: how often they are asked again.
    """

    key: str
    topic: str = "{fleet}"
    timeout: int = 120
    max_retries: int = 2


class AskedFleet(NamedTuple):
    """A fleet that was asked.

    Attributes:
        fleet: its name.
        batch_id: of the scatter.
        recipients: vehicles that were asked.
        received: vehicles that answered.
        failed: vehicles that could not be asked.
        ready: whether the scatter has ended.
    """

    fleet: str
    batch_id: int
    recipients: int
    received: int
    failed: int
    ready: bool


Row: TypeAlias = dict[str, Any]


def ask_fleets(
    tracker: Tracker, fleets: Sequence[str], options: AskOptions, body: Mapping[str, object]
) -> list[AskedFleet]:
    """Ask all fleets, and wait until their scatters have ended.

    Args:
        tracker: starts the scatters.
        fleets: names of a few fleets.
        options: how to ask.
        body: of the message, as JSON, to which the fleet is added. The same key needs the same body.

    Returns:
        One for each fleet. One that is not ready has passed its deadlines without ending; its counts are
        those so far.
    """
    started = {
        fleet: tracker.scatters.start(
            options.topic.format(fleet=fleet),
            {"fleet": fleet, **body},
            type=TYPE,
            key=f"{options.key}/{fleet}",
            correlation_id=f"{options.key}/{fleet}",
            timeout=options.timeout,
            max_retries=options.max_retries,
            user_key=f"{options.key}/{fleet}"[:256],
        ).batch.batch_id
        for fleet in fleets
    }
    until = time.monotonic() + options.timeout * (1 + options.max_retries) + GRACE
    for batch_id in started.values():
        while not tracker.status(batch_id).batch.state.terminal and time.monotonic() < until:
            time.sleep(POLL)
    return [_asked(tracker, fleet, batch_id) for fleet, batch_id in started.items()]


def gather_answers(spark: SparkSession, asked: Sequence[AskedFleet], service: Service) -> DataFrame:
    """Collect what every vehicle that was asked has said. Each task reads one fleet, a page at a time.

    Args:
        spark: the session.
        asked: of ``ask_fleets``.
        service: the stack, for the tasks.

    Returns:
        Rows of ``ANSWERS``, one for each recipient.
    """

    def read(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tracker = service.tracker()
        for page in pages:
            for fleet, batch_id in zip(page["fleet"].to_pylist(), page["batch_id"].to_pylist(), strict=True):
                answers = read_answers(tracker, fleet, batch_id)
                while rows := list(islice(answers, _AT_ONCE)):
                    yield pa.RecordBatch.from_pylist(rows, schema=_GATHERED)

    scatters = spark.createDataFrame(
        [(one.fleet, one.batch_id) for one in asked], "fleet string, batch_id bigint"
    )
    found = scatters.repartition(max(1, len(asked)), "batch_id").mapInArrow(read, _GATHERED_DDL)
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


def no_answers(spark: SparkSession) -> DataFrame:
    """No rows of ``ANSWERS``, for a report that asks nobody."""
    return spark.createDataFrame([], ANSWERS)


def read_answers(tracker: Tracker, fleet: str, batch_id: int) -> Iterator[Row]:
    """Read who is missing, then who failed, then who answered.

    A vehicle may answer while this is read. In this order it is then there twice, in any other it might not
    be there at all.
    """
    scatters = tracker.scatters
    return chain(
        (_row(fleet, one.name, SILENT) for one in scatters.missing_recipients(batch_id)),
        (_row(fleet, one.name, FAILED, detail=one.reason) for one in scatters.failed_recipients(batch_id)),
        (
            _row(
                fleet,
                reply.name,
                ANSWERED,
                replied_ms=reply.replied_at,
                payload=None if reply.payload is None else json.dumps(reply.payload, sort_keys=True),
                detail=reply.claim,
            )
            for reply in scatters.replies(batch_id)
        ),
    )


def _row(fleet: str, vehicle: str, answer: str, **more: Any) -> Row:
    return {"fleet": fleet, "vehicle": vehicle, "answer": answer, **more}


def _asked(tracker: Tracker, fleet: str, batch_id: int) -> AskedFleet:
    now = tracker.scatters.status(batch_id)
    return AskedFleet(fleet, batch_id, now.batch.items, now.received, now.failed, now.ready)
