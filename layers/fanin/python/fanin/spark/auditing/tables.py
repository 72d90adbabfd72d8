"""The rows of the two tables, as lines of DynamoDB JSON and as typed columns.

Lines come from exports to S3, or from scans, of which each task reads a segment. Both look like
``{"Item": {"word_id": {"S": "7/0/1"}, "word": {"N": "12"}}}``. A row that the service cannot have written is
kept, with its ``fault``, and is not fatal.

A full export in DynamoDB JSON is a folder ``AWSDynamoDB/<id>/`` with ``manifest-summary.json``,
``manifest-files.json``, one line for each data file, and ``data/*.json.gz``, one line for each row. Only the
files in the manifest are read, and they must have as many rows as the manifest says. The format:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html
"""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import and_, or_
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fanin.adapters.dynamodb.rows import SUMS
from fanin.domain.batch import Kind, Mode, State
from fanin.domain.ids import MAX_BATCH_ID, MAX_ITEMS
from fanin.domain.totals import MAX_SUM, MAX_TOTALS, NAME
from fanin.errors import ExportDamaged
from fanin.spark.runtime.arrow import ArrowBatches, for_each
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.service import Service

LINES: Final = "value string"  # each a line of DynamoDB JSON
SUMMARY: Final = "manifest-summary.json"
FORMAT: Final = "DYNAMODB_JSON"
FULL: Final = "FULL_EXPORT"


@dataclass(frozen=True)
class Export:
    """One table's export."""

    folder: str  # of its ``manifest-summary.json``: ``s3://…/AWSDynamoDB/<id>``, or a local copy
    at: int  # milliseconds since the epoch; the moment whose rows it has
    files: list[str]  # that have rows
    rows: int  # how many these have

    def lines(self, spark: SparkSession) -> DataFrame:
        """The rows as lines, each a ``value``."""
        if not self.files:
            return spark.createDataFrame([], LINES)
        try:
            return spark.read.text(self.files)
        except AnalysisException as error:
            raise ExportDamaged(
                f"{self.folder} lacks a data file that its manifest names; copy or export it again"
            ) from error

    def check(self, found: int) -> None:
        """Compare the number of rows that were read with the manifest."""
        if found != self.rows:
            raise ExportDamaged(
                f"{self.folder} holds {found} rows, and its manifest says {self.rows}; copy or export it"
                " again"
            )


def read_export(spark: SparkSession, folder: str) -> Export:
    """Read the manifests of an export, whose folder may be given with the name of its summary."""
    files = Folder(spark, folder.rstrip("/").removesuffix(f"/{SUMMARY}"))
    try:
        return _manifest(files, json.loads(files.read(SUMMARY) or ""))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ExportDamaged(
            f"{files.path} is not a finished export of a table; name the folder AWSDynamoDB/<id> of one"
        ) from error


def _manifest(files: Folder, summary: Mapping[str, Any]) -> Export:
    folder, kind = files.path, summary.get("exportType")
    if summary["outputFormat"] != FORMAT or kind not in {None, FULL}:
        raise ExportDamaged(
            f"{folder} is {kind} as {summary['outputFormat']}; export the table in full, as {FORMAT}"
        )
    root, _, manifest = summary["manifestFilesS3Key"].rpartition("/")
    above = f"/{root.rpartition('/')[2]}/"
    paths, rows = list[str](), 0
    for line in (files.read(manifest) or "").splitlines():
        file = json.loads(line)
        _, found, key = f"/{file['dataFileS3Key']}".rpartition(above)
        if not found:
            raise ExportDamaged(f"{folder}/{manifest} names a data file of another export; export it again")
        if count := int(file["itemCount"]):
            paths.append(f"{folder}/{key}")
            rows += count
    if rows != summary["itemCount"]:
        raise ExportDamaged(
            f"{folder}/{manifest} lists {rows} rows, and the summary {summary['itemCount']}; copy or export"
            " it again"
        )
    at = datetime.fromisoformat(summary["exportTime"])
    return Export(folder, int(at.timestamp() * 1000), paths, rows)


def scan(
    spark: SparkSession, service: Service, table: str, *, segments: int, consistent: bool = True
) -> DataFrame:
    """Read all rows of a table, in the form of an export.

    Whenever the plan runs it reads the table again, and may find other rows. So write them before you work
    on them.
    """

    def pages(segment: int) -> Iterator[ArrowBatches]:
        for lines in read_segment(service, table, segment, segments=segments, consistent=consistent):
            yield pa.RecordBatch.from_pydict({"value": lines})

    return for_each(spark.range(0, segments, 1, segments), pages, LINES)


def read_segment(
    service: Service, table: str, segment: int, *, segments: int, consistent: bool
) -> Iterator[list[str]]:
    """Read a segment of a table, a page at a time, as lines of an export."""
    part = {"Segment": segment, "TotalSegments": segments, "ConsistentRead": consistent}
    connection, start = service.connection(), dict[str, Any]()
    while True:
        items, after = connection.scan({"TableName": table, **part, **start})
        yield [line(item) for item in items]
        if after is None:
            return
        start = {"ExclusiveStartKey": after}


def line(item: Mapping[str, Any]) -> str:
    """A row as a line of an export: DynamoDB's low-level JSON, bytes in base64."""
    return json.dumps({"Item": item}, default=lambda value: base64.b64encode(bytes(value)).decode())


MALFORMED_KEY: Final = "malformed_key"
MALFORMED_ROW: Final = "malformed_row"
_TTLS: Final = ("open_idle_ttl", "closed_idle_ttl")
_REQUIRED: Final = ("items", "acked", "created_at", "touched_at", "expires_at", *_TTLS)
_NUMBERS: Final = (*_REQUIRED, "closed_at", "ended_at", "stall_after")
_MOST: Final = 2**53  # so milliseconds of a row's number are still a BIGINT, and no row can stop an audit
_TEXTS: Final = ("state", "mode", "kind", "user_key", "shelf", "totals")
SUM: Final = "decimal(38,0)"  # DynamoDB adds numbers of 38 digits exactly
_TOTALS: Final = f"^{NAME}( {NAME}){{0,{MAX_TOTALS - 1}}}$"


def words(lines: DataFrame) -> DataFrame:
    """Type the rows of the words table.

    Returns:
        word_id: the key as it is.
        batch_id, level, number: the parts of the key; null if it is malformed.
        bits: the word, bit 63 as the sign; -1, all pending, for a row that only has leases.
        written: whether the row has a word.
        done_bits: the set of cleared bits as a mask; null if the row does not have it.
        failed_bits: bits cleared by a failure.
        carried: how many of its bits were cleared with a whole tally; null if the row does not have it.
        sums: of the totals of the batch, null for those that the row does not have; null if it has none.
        expires_at: seconds since the epoch.
        fault: ``MALFORMED_KEY`` or ``MALFORMED_ROW`` if the service cannot have written the row, or null.
        detail: the beginning of the row, if it has a fault.
    """
    numbers = dict.fromkeys(("word", "failed", "expires_at", "carried", *SUMS), "N")
    rows = _items(lines, {"word_id": "S", "done": "NS", **numbers}, "value")
    sums, odd_sums = _sums()
    key = F.expr(r"word_id.S rlike '^(0|[1-9][0-9]{0,15})/(0|[1-9][0-9]?)/(0|[1-9][0-9]{0,12})$'")
    kinds = {"batch_id": "bigint", "level": "int", "number": "bigint"}
    parts = [
        F.expr(f"try_cast(split_part(word_id.S, '/', {part}) as {kind})").alias(name)
        for part, (name, kind) in enumerate(kinds.items(), 1)
    ]
    typed = rows.select(
        F.col("word_id.S").alias("word_id"),
        F.coalesce(key, F.lit(False)).alias("well_named"),
        *parts,
        *(F.col(name).isNotNull().alias(f"has_{name}") for name in ("word", "done", "failed", "carried")),
        _bits("word.N").alias("word"),
        _mask("done.NS").alias("done_bits"),
        _bits("failed.N").alias("failed"),
        _number("expires_at").alias("expires_at"),
        _number("carried").alias("carried"),
        sums.alias("sums"),
        odd_sums.alias("odd_sums"),
        "value",
    )
    named = f"well_named and batch_id <= {MAX_BATCH_ID}"
    odd = (
        "expires_at is null or (has_word and word is null) or (has_failed and failed is null)"
        " or (has_done and done_bits is null) or (has_carried and carried is null) or odd_sums"
    )
    fault = F.when(F.expr(f"not ({named})"), MALFORMED_KEY).when(F.expr(odd), MALFORMED_ROW)
    return typed.withColumn("fault", fault).select(
        "word_id",
        *(F.expr(f"if({named}, {name}, null)").alias(name) for name in ("batch_id", "level", "number")),
        F.coalesce("word", F.lit(-1)).alias("bits"),
        F.col("has_word").alias("written"),
        "done_bits",
        F.coalesce("failed", F.lit(0)).alias("failed_bits"),
        *("carried", "sums", "expires_at", "fault"),
        F.when(F.col("fault").isNotNull(), F.substring("value", 1, 200)).alias("detail"),
    )


def batches(lines: DataFrame) -> DataFrame:
    """Type the rows of the batches table; the salt is checked, and dropped.

    Returns:
        The attributes of ``fanin.domain.batch.Batch`` that the audit needs, by their names; ``totals`` are
        the names, null if there are none, and ``totals_exact`` is null if the row does not have it. And
        ``sums``, ``shelf`` and ``fault`` as for words.
    """
    kinds = {"salt": "B", "partial": "BOOL", "totals_exact": "BOOL", **dict.fromkeys(_TEXTS, "S")}
    rows = _items(lines, kinds | dict.fromkeys(("batch_id", *_NUMBERS, *SUMS), "N"))
    sums, odd_sums = _sums()
    sound = [
        F.expr("salt.B rlike '^[A-Za-z0-9+/]{22}==$'"),
        F.coalesce(F.col("totals.S").rlike(_TOTALS), F.col("totals").isNull()),
        ~odd_sums,
        *(F.col(name).isNull() | _number(name).isNotNull() for name in _NUMBERS),
    ]
    typed = rows.select(
        F.expr("try_cast(batch_id.N as bigint)").alias("batch_id"),
        *(_number(name).alias(name) for name in _NUMBERS),
        *(F.col(f"{name}.S").alias(name) for name in _TEXTS),
        *(F.col(f"{name}.BOOL").alias(name) for name in ("partial", "totals_exact")),
        sums.alias("sums"),
        reduce(and_, sound).alias("sound"),
    )
    whole = [
        F.col("sound"),
        F.col("batch_id").between(0, MAX_BATCH_ID),
        F.col("items") <= MAX_ITEMS,
        *(F.col(name).isin(list(kind)) for name, kind in (("state", State), ("mode", Mode), ("kind", Kind))),
        F.least(*_TTLS) > 0,  # least ignores nulls
        *(F.col(name).isNotNull() for name in (*_REQUIRED, "partial", "shelf")),
    ]
    return typed.select(
        "batch_id",
        *_NUMBERS,
        *(name for name in _TEXTS if name != "totals"),
        *("partial", "totals_exact", "sums"),
        F.split("totals", " ").alias("totals"),
        F.when(~F.coalesce(reduce(and_, whole), F.lit(False)), MALFORMED_ROW).alias("fault"),
    )


def _number(name: str) -> Column:
    """A number attribute from 0 to ``_MOST`` as BIGINT; null if it is another, or not there."""
    number = f"try_cast({name}.N as bigint)"
    return F.expr(f"if({number} between 0 and {_MOST}, {number}, null)")


def _sums() -> tuple[Column, Column]:
    """The sums of a row, null if it has none; and whether a sum is something else."""
    # 64 such sums fit into the type together, so none can stop an audit.

    def number(name: str) -> Column:
        found = f"try_cast({name}.N as {SUM})"
        fits = f"{name}.N rlike '^-?[0-9]{{1,38}}$' and {found} between {-MAX_SUM}BD and {MAX_SUM}BD"
        return F.expr(f"if({fits}, {found}, null)")

    numbers, present = [number(name) for name in SUMS], [F.col(name).isNotNull() for name in SUMS]
    odd = [there & number.isNull() for there, number in zip(present, numbers, strict=True)]
    return F.when(reduce(or_, present), F.array(*numbers)), reduce(or_, odd)


def _bits(text: str) -> Column:
    """An unsigned 64-bit number, given as text, with bit 63 as the sign; null if the text is another."""
    return F.expr(
        f"case when {text} rlike '^[0-9]{{1,20}}$' and try_cast({text} as decimal(20,0)) <= {2**64 - 1}BD"
        f" then cast(conv({text}, 10, -10) as bigint) end"
    )


def _mask(positions: str) -> Column:
    """A set of bit positions, given as texts, as a mask; null if it is missing or has other texts."""
    return F.expr(
        f"aggregate(transform({positions}, x -> try_cast(x as int)), 0L,"
        " (mask, x) -> mask | if(x between 0 and 63, shiftleft(1L, x), null))"
    )


def _items(lines: DataFrame, kinds: Mapping[str, str], *also: str) -> DataFrame:
    """The attributes of rows, given with DynamoDB's abbreviations of their types."""
    types = {"NS": "array<string>", "BOOL": "boolean"}
    item = (f"{name}: struct<{kind}: {types.get(kind, 'string')}>" for name, kind in kinds.items())
    line = F.from_json("value", f"Item struct<{', '.join(item)}>").alias("line")
    return lines.select(line, *also).select("line.Item.*", *also)
