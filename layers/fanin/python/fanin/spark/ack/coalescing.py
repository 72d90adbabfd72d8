"""From the rows of a run to the words that it clears: staged, coalesced and merged.

Rows may be others when they are evaluated again: because of a clock, or of a function that fails now and
then. So they are evaluated once, and what tasks make of them is written before anything follows from it: what
one attempt of each task gave, whatever executors are lost later. Only files that tasks read themselves may be
read again, since these do not change.
"""

import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.errors import InvalidRequest
from fanin.spark.ack.coalescer import PAGE_SCHEMA, pages_from_rows
from fanin.spark.ack.input_schema import InputSchema, check_columns, normalize
from fanin.spark.ack.ledger_writes import COUNTS, FAILURE, Acknowledged, fail, mark
from fanin.spark.ack.page_merger import MARK_SCHEMA, in_order, merge, merge_task
from fanin.spark.ack.parquet_files import ParquetFiles, pages_from_files
from fanin.spark.inputs.formats import Dataset, DatasetFormat
from fanin.spark.inputs.names import with_names
from fanin.spark.inputs.opening import Opened, open_input
from fanin.spark.runtime.arrow import ArrowBatches, page
from fanin.spark.runtime.datasets import check_apart, check_replaceable, replace_dataset
from fanin.spark.runtime.places import path_of
from fanin.spark.runtime.progress import say
from fanin.spark.runtime.rejects import (
    Reject,
    RejectLimit,
    check_rejects_folder,
    rejects_folder,
    write_few_rejects,
    write_rejects,
)
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import classic, session_of
from fanin.spark.runtime.unreadable import marked
from fanin.spark.runtime.values import id_of_batch

WORK: Final = ("pages", "merged", "failed")  # what steps pass to each other, in the work folder


class Given(NamedTuple):
    """The arguments of a run as they are meant; ``small`` says whether the rows may be few."""

    rows: DataFrame
    service: Service
    work: str
    rejects: str
    batch_id: int | None
    totals: Sequence[str]
    max_rejects: RejectLimit
    files: ParquetFiles | None = None
    small: bool = False

    def named(self) -> tuple[DataFrame, InputSchema, tuple[str, ...]]:
        """The columns that count, how they name items, and the names of totals, each of which is a column."""
        rows = with_names(self.rows, ["item", "batch_id", "ordinal", "reason", *self.totals])
        totals = check_columns(self.totals, rows.schema)
        schema = InputSchema.of(rows.columns, self.batch_id)
        reason = ["reason"] if "reason" in rows.columns else []
        return rows.select(*schema.columns, *reason, *totals), schema, totals


def given_of(  # noqa: PLR0917  the arguments of ``acknowledge``
    what: str,
    rows: DataFrame | Dataset,
    service: Service | None,
    work: str | PathLike[str],
    rejects: str | PathLike[str] | None,
    batch_id: Any,
    totals: Sequence[str],
    max_rejects: Any,
    ordinals: bool,
) -> Given:
    """Read the arguments of a run, as ``acknowledge`` takes them."""
    folder = path_of("work", work).rstrip("/")
    left_out = rejects_folder(None if rejects is None else path_of("rejects", rejects), folder)
    batch_id = id_of_batch(batch_id)
    limit = RejectLimit.of(max_rejects)
    spark = classic(session_of(rows), what)
    files, small = None, False
    if isinstance(rows, Dataset):
        replaced = {left_out: "rejects (--rejects)"}
        replaced |= {f"{folder}/{one}": "work (--work)" for one in WORK}
        ordinals = ordinals or batch_id is not None
        rows, files, small = _open(spark, rows, totals, replaced, ordinals=ordinals)
    service = service or Service.from_env()
    return Given(rows, service, folder, left_out, batch_id, totals, limit, files, small)


class Coalesced(NamedTuple):
    """What a run is to write."""

    rows: int  # of the input
    rejects: dict[str, int]  # rows that are left out, by reason
    failed: int  # items that fail
    words: int  # about how many words there are to clear, and not fewer
    merged: DataFrame  # ``MERGED``, which has these words, and the failures
    totals: dict[str, int]  # the sum of each total over all items, by name


def coalesce(given: Given) -> Coalesced:
    """Find the words that a run is to clear and the items that it fails, and write the rejects."""
    spark, service = given.rows.sparkSession, given.service
    # Early, so that a run does not read everything and fail then.
    work = [f"{given.work}/{name}" for name in WORK]
    check_apart(spark, "rejects", given.rejects, work)
    check_rejects_folder(spark, given.rejects)
    for folder in work:
        check_replaceable(spark, folder)
    rows, schema, totals = given.named()
    if given.files and not totals and given.files.readable(schema):
        pages = pages_from_files(spark, given.files, schema, service, reasons="reason" in rows.columns)
    else:
        pages = pages_from_rows(normalize(rows, schema, totals), schema, service, totals)
        pages = replace_dataset(pages, f"{given.work}/pages")
    merged = replace_dataset(merge(pages, schema, service), f"{given.work}/merged")
    counts = F.sum("rows"), F.count("mask"), F.count("why"), *map(sum_of, range(1, len(totals) + 1))
    found = merged.groupBy("reason").agg(F.count(F.lit(1)), *counts).collect()
    places = range(2, 5 + len(totals))
    read, words, failed, *sums = (sum(int(row[place] or 0) for row in found) for place in places)
    left_out = merged.where("reason IS NOT NULL").select("value", "reason", "detail")
    counted = {reason: count for reason, count, *_ in found if reason is not None}
    write_rejects(left_out, given.rejects, counted)
    given.max_rejects.check(counted, read, given.rejects, spark)
    return Coalesced(read, counted, failed, words, merged, dict(zip(totals, sums, strict=True)))


def sum_of(place: int) -> Column:
    """The sum of what items bring to a total, by its place; 64 values of a word fit into a BIGINT."""
    word = f"aggregate(brought, 0L, (sum, one) -> sum + coalesce(one[{place}], 0L))"
    return F.sum(F.expr(word).cast("decimal(38,0)"))


SMALL: Final = 4 * 2**20  # most bytes of all files for which it is tried whether their rows are few


def _open(
    spark: SparkSession, data: Dataset, totals: Sequence[str], replaced: Mapping[str, str], *, ordinals: bool
) -> tuple[DataFrame, ParquetFiles | None, bool]:
    """Open a dataset: its rows; the files, if tasks can read them themselves; whether rows may be few."""
    name, other = ("ordinal", "item") if ordinals else ("item", "ordinal")
    fields = list(dict.fromkeys((name, other, "batch_id", "reason", *totals)))
    opened = open_input(spark, data, fields=fields, replaced=replaced)
    rows = with_names(opened.rows, fields)
    if opened.format is DatasetFormat.JSON:
        for total in totals:  # as a field of a text that has it in no object
            if rows.where(F.col(total).isNotNull()).isEmpty() and not rows.isEmpty():
                raise InvalidRequest(f"no row of {data.place} has a field {total} with what its item brings")
        rows = rows.withColumn(name, F.coalesce(name, other)).drop(other)
    if opened.format in {DatasetFormat.CSV, DatasetFormat.JSON} and name in rows.columns:
        rows = rows.withColumn(name, F.coalesce(marked(), name))
    small = opened.files is not None and sum(file.size for file in opened.files) <= SMALL
    return rows, _parquet_files(spark, opened, fields), small


def _parquet_files(spark: SparkSession, opened: Opened, fields: Sequence[str]) -> ParquetFiles | None:
    """The files that tasks can read themselves; None if Spark has to read them.

    Then folders have columns that the files do not have; or pyarrow cannot read the files here, perhaps
    because only Spark has the credentials.
    """
    if opened.format is not DatasetFormat.PARQUET or not opened.files:
        return None
    parts = {part for file in opened.files for part in file.path.split("/")[:-1] if "=" in part}
    if {part.partition("=")[0].lower() for part in parts} & set(fields):
        return None
    try:
        files = ParquetFiles(opened.files, spark)
        _ = files.schema  # of the first file, which has to be opened for it
    except (pa.ArrowException, OSError) as error:
        first = opened.files[0].path
        say(f"ack: pyarrow cannot read {first}, so Spark reads all files, slower: {error}", sys.stderr)
        return None
    return files


ROWS: Final = 10_000  # most rows of a few: at worst as many writes, by the driver alone
TASKS: Final = 32  # most tasks, of at most so many rows each, so that what comes to the driver is bounded


def acknowledge_few(given: Given) -> Acknowledged | None:
    """As ``acknowledge_many``, if the rows are few; None if they are not: then nothing was written."""
    spark, (rows, schema, totals) = given.rows.sparkSession, given.named()
    few = coalesce_few(rows, schema, given.service, totals)
    if few is None:
        return None
    counted = write_few_rejects(spark, few.rejects, given.rejects, write_empty=given.small)
    given.max_rejects.check(counted, few.rows, given.rejects, spark)
    return few.write(given.service, counted, totals)


class Few(NamedTuple):
    """A few rows, coalesced: how many, and rows of ``MERGED``."""

    rows: int
    merged: Sequence[dict[str, Any]]

    @property
    def rejects(self) -> list[Reject]:
        return [Reject(row["value"], row["reason"], row["detail"]) for row in self.merged if row["reason"]]

    @property
    def marks(self) -> ArrowBatches:
        """Rows of ``MARK_SCHEMA``, in the order of ``partition_marks``."""
        words = [row for row in self.merged if row["mask"] is not None]
        words.sort(key=lambda row: (row["batch_id"], row["number"] << 6 * row["level"], row["level"]))
        return pa.RecordBatch.from_pylist(words, schema=MARK_SCHEMA)

    def write(self, service: Service, rejects: dict[str, int], totals: Sequence[str] = ()) -> Acknowledged:
        """Fail and mark the items; ``rejects`` are the rows that are left out, by reason."""
        before, ledger = service.meter().writes.total(), service.ledger()
        failures = [row for row in self.merged if row["why"] is not None]
        record = pa.RecordBatch.from_pylist(failures, schema=FAILURE)
        results = [one for some in fail([record], ledger, totals) for one in some]
        results += [one for some in mark([self.marks], ledger, totals) for one in some]
        done = {name: sum(getattr(result, name) for result in results) for name in COUNTS}
        done["writes"] = service.meter().writes.total() - before
        done["completed"] = len({result.batch_id for result in results if result.complete})
        distinct = sum(result.items for result in results) - len(failures)
        values = [one for row in self.merged for one in row["brought"] or ()]
        sums = {name: sum(one[place] or 0 for one in values) for place, name in enumerate(totals, 1)}
        return Acknowledged(self.rows, distinct, len(failures), rejects, **done, totals=sums)


def coalesce_few(
    rows: DataFrame, schema: InputSchema, service: Service, totals: Sequence[str] = ()
) -> Few | None:
    """Coalesce the rows if they are few, in one Spark job; None if there are more."""
    named = normalize(rows, schema, totals)
    # To join partitions takes no shuffle, so it is still one job; a task that has too much stops early.
    pages = pages_from_rows(named.coalesce(TASKS), schema, service, totals, most=ROWS).collect()
    # Rows without a partition, such as those of an empty file, have no task, and give not even a count.
    count = sum(one["rows"] or 0 for one in pages)
    if count > ROWS:
        return None
    record = page(PAGE_SCHEMA, in_order(pages))
    return Few(count, [row for some in merge_task(service, schema)([record]) for row in some.to_pylist()])
