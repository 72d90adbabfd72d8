"""Contiguous ordinals that stay: rows are staged once, and numbered whenever they are read.

Two passes over one plan need not see its rows in the same partitions, and a retried task need not see them
in the same order. So the rows are written first, each with its partition and its place in it; once all of
them are there the partitions are counted, and a row's ordinal is the count of the partitions before its own
and its place. Whoever reads the staging, a retried, speculative or re-run task, derives the same numbers.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from fanin.errors import InvalidRequest, ServiceUnavailable
from fanin.spark.runtime.files import Folder

ORDINAL: Final = "ordinal"
"""The column that a staging is read with: from 0 to the number of rows, less one."""
PART: Final = "_p"
PLACE: Final = "_r"

_NOTE: Final = "staging.json"
_PLACE_BITS: Final = (1 << 33) - 1  # of monotonically_increasing_id; the partition is above


@dataclass(frozen=True)
class Staging:
    """Rows that are staged to their end.

    Attributes:
        folder: where.
        attempt: the name of these rows; another staging of the same input has another.
        schema: of the rows, without the ordinal.
        counts: rows by partition, those without rows left out.
    """

    folder: str
    attempt: str
    schema: StructType
    counts: Mapping[int, int]

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    def read(self, spark: SparkSession) -> DataFrame:
        """The rows with their ordinals, in no order."""
        parts = sorted(self.counts)
        firsts = accumulate((self.counts[part] for part in parts), initial=0)
        offsets = spark.createDataFrame(list(zip(parts, firsts, strict=False)), _OFFSETS)
        staged = spark.read.schema(_with_places(self.schema)).parquet(f"{self.folder}/{self.attempt}")
        numbered = staged.join(F.broadcast(offsets), PART)
        return numbered.select((F.col("_first") + F.col(PLACE)).alias(ORDINAL), *self.schema.names)


def stage(
    spark: SparkSession,
    folder: str,
    source: Mapping[str, Any],
    make: Callable[[], DataFrame],
    *,
    then: Callable[[str, int], None] | None = None,
) -> Staging:
    """Stage rows, or find what was staged before.

    Args:
        spark: the session.
        folder: where; it belongs to this input until it is deleted. What a driver that died left of an
            attempt stays in it too.
        source: what makes the rows what they are, as JSON: paths, formats, options.
        make: gives the rows; not called if they are staged.
        then: called with the attempt's name and number of rows when they are written, before they count as
            staged.

    Returns:
        The first staging that was finished in the folder, by whichever driver.

    Raises:
        InvalidRequest: the folder has rows of another source, or a column has a name that staging uses.
        ServiceUnavailable: the file system lost rows.
    """
    files = Folder(spark, folder)
    found = _read(files, source)
    if found is not None:
        return found
    rows = make()
    if taken := {PART, PLACE, ORDINAL} & set(rows.columns):
        raise InvalidRequest(f"rows with a column {taken.pop()!r} cannot be staged; rename it")
    attempt = f"rows-{uuid.uuid4().hex}"
    path = files.at(attempt)
    place = F.monotonically_increasing_id().bitwiseAND(F.lit(_PLACE_BITS))
    rows.withColumns({PART: F.spark_partition_id(), PLACE: place}).write.parquet(path)
    counts = _counts(spark, path, rows.schema)
    if then is not None:
        then(attempt, sum(count for _, count in counts))
    note = {
        "source": dict(source),
        "attempt": attempt,
        "schema": rows.schema.jsonValue(),
        "counts": counts,
    }
    files.write(_NOTE, json.dumps(note), replace=False)
    staged = _read(files, source)
    if staged is None:
        raise ServiceUnavailable(f"{files.at(_NOTE)} was written, and is not there; start again")
    return staged


def _read(files: Folder, source: Mapping[str, Any]) -> Staging | None:
    text = files.read(_NOTE)
    if text is None:
        return None
    note = json.loads(text)
    if note["source"] != json.loads(json.dumps(dict(source))):
        raise InvalidRequest(
            f"{files.path} holds the staging of another input, {json.dumps(note['source'])[:1000]};"
            " name another folder, or delete this one"
        )
    schema = StructType.fromJson(note["schema"])
    return Staging(files.path, note["attempt"], schema, dict(note["counts"]))


def _counts(spark: SparkSession, path: str, schema: StructType) -> list[tuple[int, int]]:
    """Rows by partition; as many as there are partitions that have any.

    Raises:
        ServiceUnavailable: a partition has not all of its places once.
    """
    staged = spark.read.schema(_with_places(schema)).parquet(path)
    counted = staged.groupBy(PART).agg(F.count("*").alias("rows"), F.max(PLACE).alias("last"))
    found = [(row[PART], row["rows"], row["last"]) for row in counted.collect()]
    for part, rows, last in found:
        if last + 1 != rows:
            raise ServiceUnavailable(
                f"partition {part} of {path} has {rows} rows and its last is number {last}: the file system"
                " lost or doubled some; delete the folder and start again"
            )
    return sorted((part, rows) for part, rows, _ in found)


def _with_places(schema: StructType) -> StructType:
    return StructType([*schema.fields, *_PLACES.fields])


_PLACES: Final = StructType().add(PART, "integer").add(PLACE, "long")
_OFFSETS: Final = StructType(
    [StructField(PART, IntegerType(), False), StructField("_first", LongType(), False)]
)
