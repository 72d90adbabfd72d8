"""Contiguous ordinals that never change: rows are made once, staged, and numbered whenever they are read.

Two passes over one plan may see its rows in different partitions, and a retried task may see them in another
order. So the rows are written first, each with its partition and its place in that partition. When all are
written, the partitions are counted. A row's ordinal is its place plus the rows of all partitions before its
own. Every task that reads the staging, be it retried, speculative or run again, derives the same ordinals.

Rows that are left out are staged in the same pass, since a second one might see other rows. If there are any,
the others are copied to a staging of their own, so that nothing is missing between their places.
"""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import StructType

from fanin.errors import FaninError, InvalidRequest, ServiceUnavailable
from fanin.spark.fanout.bodies import BODY, KEY
from fanin.spark.fanout.folder import other_input, what_to_do
from fanin.spark.runtime.datasets import read_dataset, read_few
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.rejects import SCHEMA as REJECTS
from fanin.spark.runtime.rejects import Reason

ORDINAL: Final = "ordinal"
"""The column with the row's number, from 0."""
PART: Final = "_p"
PLACE: Final = "_r"

ROWS_OF_A_FILE: Final = 25_000
"""Most rows of a file: what a task sends in some seconds if it reads a single one."""
FEW_FILES: Final = 16
"""As many tasks may each read one file: the notes of what they sent are all read by ``fanin why``."""

Data: TypeAlias = "Mapping[str, Any] | None"
"""What tells data from other data in the same place, as JSON; None if that is not known."""

_NOTE: Final = "staging.json"
"""The file that says what is staged."""
_PLACE_BITS: Final = (1 << 33) - 1  # of monotonically_increasing_id; its higher bits are the partition


@dataclass(frozen=True)
class Staging:
    """Rows that are staged completely.

    Attributes:
        folder: where they are.
        attempt: the name of these rows; another staging of the same input has another name.
        schema: of the rows, without the ordinal.
        counts: partition → number of rows; partitions without rows are left out.
        left: rows of the input that are left out, in the dataset ``left_out_name(attempt)``; with those that
            are staged, all of it.
        notes: what the caller stored with the rows, as JSON.
    """

    folder: str
    attempt: str
    schema: StructType
    counts: Mapping[int, int]
    left: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    @property
    def small(self) -> bool:
        """Whether its rows are in a few files, and in no more than a task should read of each."""
        return self.rows <= FEW_FILES * ROWS_OF_A_FILE and len(self.counts) <= FEW_FILES

    @property
    def keyed(self) -> bool:
        """Whether its rows have the keys of their items."""
        return KEY in self.schema.names

    def read(self, spark: SparkSession) -> DataFrame:
        """The rows with their ordinals, in any order."""
        counts = [self.counts.get(part, 0) for part in range(max(self.counts, default=-1) + 1)]
        firsts = [
            first if count else None for first, count in zip(accumulate([0, *counts]), counts, strict=False)
        ]
        # A constant, which Spark reads once; a small DataFrame to join would cost two jobs.
        first = F.get(F.from_json(F.lit(json.dumps(firsts)), "array<bigint>"), F.col(PART))
        staged = read_dataset(spark, f"{self.folder}/{self.attempt}", _with_places(self.schema))
        ordinal = (first + F.col(PLACE)).alias(ORDINAL)
        return staged.where(first.isNotNull()).select(ordinal, *self.schema.names)


def left_out_name(attempt: str) -> str:
    """Name of the dataset of rows that a staging left out; it exists only if there are any."""
    return f"{attempt}-left-out"


def stage(
    spark: SparkSession,
    folder: str,
    source: Mapping[str, Any],
    make: Callable[[], tuple[DataFrame, Data]],
    *,
    data: Callable[[], Data] = lambda: None,
    then: Callable[[Staging], None] = lambda _: None,
    notes: Mapping[str, Any] | None = None,
) -> Staging:
    """Stage rows, or find those that were staged before: those of the first driver that finished.

    Args:
        spark: the session.
        folder: where to; it belongs to this input until it is deleted. It may also hold what a driver that
            died left behind.
        source: everything that the rows depend on, as JSON: paths, formats, options.
        make: gives the rows, which are evaluated once, and what tells the data that they are made of; not
            called if they are staged already. If they have the columns of rejects, those with a ``reason``
            are left out; and if they have keys, all rows of a key but its first.
        data: tells the data that is there now.
        then: called after the rows are written, and before they count as staged.
        notes: what the caller stores with the rows, as JSON.
    """
    files = Folder(spark, folder)
    if (found := _read(files, source, data)) is not None:
        return found
    rows, before = make()
    made = _write(files, rows)
    try:
        then(made)
        if data() != before:
            raise ServiceUnavailable(
                "the data changed while it was staged; start again when nobody writes to it"
            )
    except FaninError:
        files.delete(made.attempt)
        files.delete(left_out_name(made.attempt))
        raise
    note = {
        "source": dict(source),
        "attempt": made.attempt,
        "schema": made.schema.jsonValue(),
        "counts": list(made.counts.items()),
        "left": made.left,
        "data": before,
        "notes": dict(notes or {}),
    }
    files.write(_NOTE, json.dumps(note), replace=False)
    staged = _read(files, source, lambda: before)
    if staged is None:
        raise ServiceUnavailable(f"{files.at(_NOTE)} was written and is not there; start again")
    return staged


def find_staging(spark: SparkSession, folder: str, source: Mapping[str, Any] | None = None) -> Staging | None:
    """The rows that are staged in a folder, of this source if one is given; None if no driver finished."""
    return _read(Folder(spark, folder), source, lambda: None)


def _read(files: Folder, source: Mapping[str, Any] | None, data: Callable[[], Data]) -> Staging | None:
    if (text := files.read(_NOTE)) is None:
        return None
    try:
        note = json.loads(text)
        schema, counts = StructType.fromJson(note["schema"]), dict(note["counts"])
        found = Staging(files.path, note["attempt"], schema, counts, int(note["left"]), note["notes"])
        made_of, staged = note["source"], note["data"]
    except (ValueError, LookupError, TypeError):
        raise InvalidRequest(
            f"{files.at(_NOTE)} is damaged, so nobody can tell which rows are staged: put it back from a"
            " copy. If there is no copy, and no run has taken failed rows or opened a batch from this folder,"
            " move this one file away and start again; keep the others"
        ) from None
    if source is not None and made_of != json.loads(json.dumps(dict(source))):
        raise other_input(files, made_of, source)
    # Data that is gone is not other data.
    if staged is not None and (now := data()) is not None and staged != dict(now):
        told = "{files} files of {bytes} bytes ({digest:.8})".format_map
        raise InvalidRequest(
            f"{files.path} holds the staging of other data at the same place: {told(staged)} then, and"
            f" {told(now)} now. {what_to_do(files)}"
        )
    return found


def _write(files: Folder, rows: DataFrame) -> Staging:
    """Write rows with their places; those that are left out beside."""
    attempt, counted = _place(files, rows)
    left = sum(out for _, _, out in counted)
    judged = set(REJECTS.names) <= set(rows.columns)
    names = [name for name in rows.columns if not (judged and name in REJECTS.names)]
    whole = read_dataset(rows.sparkSession, files.at(attempt), _with_places(rows.schema))
    if KEY in names:
        whole, repeated = _once_a_key(whole)
        left += repeated
    if left:
        kept, counted = _place(files, whole.where("reason IS NULL").select(*names))
        out = whole.where("reason IS NOT NULL").select(*REJECTS.names)
        out.write.parquet(files.at(left_out_name(kept)))
        files.delete(attempt)
        attempt = kept
    counts = dict(sorted((part, count) for part, count, _ in counted))
    return Staging(files.path, attempt, StructType([rows.schema[name] for name in names]), counts, left)


def _once_a_key(rows: DataFrame) -> tuple[DataFrame, int]:
    """Leave out all rows of a key but its first; and count those."""
    place = F.struct(PART, PLACE)
    some = rows.where("reason IS NULL").groupBy(KEY)
    several = some.agg(F.count("*").alias("_rows"), F.min(place).alias("_first")).where("_rows > 1")
    (repeated,) = several.agg(F.coalesce(F.sum("_rows") - F.count("*"), F.lit(0)).alias("rows")).collect()
    if not repeated["rows"]:
        return rows, 0
    again = F.col("reason").isNull() & (place != F.col("_first"))
    told = {
        "value": F.col(BODY),
        "reason": F.lit(Reason.DUPLICATE.value),
        "detail": F.lit("an earlier row has the same key, and one key is one item"),
    }
    told = {name: F.when(again, column).otherwise(F.col(name)) for name, column in told.items()}
    return rows.join(several, KEY, "left").withColumns(told).select(*rows.columns), repeated["rows"]


def _place(files: Folder, rows: DataFrame) -> tuple[str, list[tuple[int, int, int]]]:
    """Write rows, each with its place, under a new name, and count them."""
    attempt = f"rows-{uuid.uuid4().hex}"
    place = F.monotonically_increasing_id().bitwiseAND(F.lit(_PLACE_BITS))
    placed = rows.withColumns({PART: F.spark_partition_id(), PLACE: place})
    placed.write.option("maxRecordsPerFile", ROWS_OF_A_FILE).parquet(files.at(attempt))
    try:
        return attempt, _counts(rows.sparkSession, files.at(attempt), rows.schema)
    except FaninError:
        files.delete(attempt)
        raise


def _counts(spark: SparkSession, path: str, schema: StructType) -> list[tuple[int, int, int]]:
    """Count the rows of each partition that has any, and those of them that are left out."""
    reason = ["reason"] if set(REJECTS.names) <= set(schema.names) else []
    if (few := read_few(spark, path, [PART, PLACE, *reason])) is not None:
        counts = [(PLACE, "count"), (PLACE, "max"), *((name, "count") for name in reason)]
        table = few.group_by(PART).aggregate(counts)
        told = (table[name].to_pylist() for name in (PART, *(f"{name}_{kind}" for name, kind in counts)))
        found: Sequence[Sequence[Any]] = list(zip(*told, strict=True))
    else:
        staged = read_dataset(spark, path, _with_places(schema)).groupBy(PART)
        found = staged.agg(F.count(PLACE), F.max(PLACE), *map(F.count, reason)).collect()
    for part, rows, last, *_ in found:
        if last + 1 != rows:
            raise ServiceUnavailable(
                f"partition {part} of {path} has {rows} rows, and the number of its last row is {last}: the"
                " file system lost or doubled some; start again, which stages all rows anew"
            )
    return [(part, rows, sum(left)) for part, rows, _, *left in found]


def _with_places(schema: StructType) -> StructType:
    return StructType([*schema.fields, *_PLACES.fields])


_PLACES: Final = StructType().add(PART, "integer").add(PLACE, "long")
