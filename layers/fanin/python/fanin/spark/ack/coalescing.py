"""From the rows of a run to the words that it clears: staged, coalesced, merged, and lifted.

Rows may be others when they are evaluated again: because of a clock, or of a function that fails now and
then. So they are evaluated once, and written before anything follows from them: as pages, which are small, or
as they are where several steps read them. What is written is that of one attempt of each task, whatever
executors are lost later. Only files are read by several steps, since these do not change; what their footers
promise is compared with what was read.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import NullType

from fanin.errors import InvalidRequest
from fanin.spark.ack.coalescer import pages_from_rows
from fanin.spark.ack.few import TASKS
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import StoredBatches
from fanin.spark.ack.page_merger import lift, merge
from fanin.spark.ack.parquet_files import ParquetFiles, pages_from_files
from fanin.spark.ack.sql_items import normalize
from fanin.spark.ack.staged_rows import check_columns, no_rows, stage_rows, with_brought
from fanin.spark.inputs.footers import promised_rows
from fanin.spark.inputs.formats import Dataset, DatasetFormat
from fanin.spark.inputs.names import case_sensitive, with_names
from fanin.spark.inputs.opening import Opened, open_input
from fanin.spark.runtime.datasets import check_apart, check_replaceable, replace_dataset
from fanin.spark.runtime.progress import say
from fanin.spark.runtime.rejects import RejectLimit, check_rejects_folder, rejects_folder, write_rejects
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import classic
from fanin.spark.runtime.unreadable import marked

WORK: Final = ("given", "rows", "failures", "pages", "merged", "failed")
"""What steps pass to each other, in the work folder."""
_FAILED: Final = "_failed"
_DONE: Final = "_done"


class Given(NamedTuple):
    """What a run was given."""

    rows: DataFrame
    service: Service
    work: str
    batch_id: int | None
    files: ParquetFiles | None
    rejects: str | None
    totals: Sequence[str]
    max_rejects: RejectLimit


class Coalesced(NamedTuple):
    """What a run is to write.

    Attributes:
        rows: of the input.
        rejects: rows that are left out, by reason.
        failed: items that fail.
        words: about how many words there are to clear, and not fewer.
        merged: rows of ``MERGED``, of which these words are.
        marks: rows of ``MARKS``, with what their items bring if there are totals.
        good: rows of ``STAGED`` that fail their items.
        valid: rows of ``STAGED`` that are no rejects.
        totals: names of totals.
    """

    rows: int
    rejects: dict[str, int]
    failed: int
    words: int
    merged: DataFrame
    marks: DataFrame
    good: DataFrame
    valid: DataFrame
    totals: Sequence[str]


def coalesce(given: Given) -> Coalesced:
    """Find the words that a run is to clear and the items that it fails, and write the rejects.

    Raises:
        InvalidRequest: as ``acknowledge``.
        TooManyRejects: too many rows are left out.
    """
    spark, batches = classic(given.rows.sparkSession, "acknowledge"), StoredBatches(given.service)
    rejected = rejects_folder(given.rejects, given.work)
    # Early, so that a run does not read everything and fail then.
    work = [f"{given.work}/{name}" for name in WORK]
    check_apart(spark, "rejects", rejected, work)
    check_rejects_folder(spark, rejected)
    for folder in work:
        check_replaceable(spark, folder)
    rows = with_names(given.rows, ["item", "batch_id", "ordinal", "reason", *given.totals])
    totals = check_columns(given.totals, rows.schema)
    schema = InputSchema.of(rows.columns, given.batch_id)
    reasons = "reason" in rows.columns
    rows = rows.select(*schema.columns, *(["reason"] if reasons else []), *totals)
    expected = None
    if reasons or totals:
        if given.files:
            expected = promised_rows(spark, given.files.system, given.files.sizes)
        else:
            rows = replace_dataset(_storable(rows), f"{given.work}/given")
            expected = rows.count()
    staged, bad = no_rows(rows), Counter[str]()
    if totals or reasons:
        some, name = (rows, "rows") if totals else (rows.where("reason IS NOT NULL"), "failures")
        staged = stage_rows(some, schema, batches, f"{given.work}/{name}", totals=totals)
        kind = F.coalesce("reason", F.when(F.col("why").isNotNull(), F.lit(_FAILED)).otherwise(F.lit(_DONE)))
        bad.update(dict(staged.groupBy(kind).count().collect()))
    failed, _ = bad.pop(_FAILED, 0), bad.pop(_DONE, 0)
    valid = staged.where("reason IS NULL")
    good, done = valid.where("why IS NOT NULL"), valid.where("why IS NULL")
    acks = done if totals else rows.where("reason IS NULL") if reasons else rows
    if given.files and not totals and given.files.readable(schema):
        pages = pages_from_files(spark, given.files, schema, batches, reasons=reasons)
    else:
        pages = pages_from_rows(normalize(acks.select(*schema.columns), schema), schema, batches)
    if not (given.files or reasons or totals):
        pages = replace_dataset(pages, f"{given.work}/pages")
    if failed:  # they are merged too, to find items that are both done and failed
        pages = pages.unionByName(pages_from_rows(good, schema, batches, failed=True))
    merged = replace_dataset(merge(pages, schema, batches), f"{given.work}/merged")
    columns = ["value", "reason", "detail"]
    left_out = merged.where("reason IS NOT NULL").select(columns)
    left_out = left_out.unionByName(staged.where("reason IS NOT NULL").select(columns))
    counts = F.count(F.lit(1)), F.coalesce(F.sum("rows"), F.lit(0)), F.count("mask")
    found = merged.groupBy("reason").agg(*counts).collect()
    again = Counter({reason: count for reason, count, _, _ in found if reason is not None})
    counted = write_rejects(left_out, rejected, bad + again)
    read = sum(rows for _, _, rows, _ in found) + bad.total()
    if expected is not None and read != expected:
        raise InvalidRequest(
            f"there are {expected} rows, and {read} were read: a file is damaged or changes while it is read;"
            " start again when nobody writes to it. No item was acknowledged or failed"
        )
    given.max_rejects.check(counted, read, rejected, spark)
    lifted = lift(merged, batches)
    return Coalesced(
        rows=read,
        rejects=counted,
        failed=failed,
        words=sum(words for _, _, _, words in found),
        merged=merged,
        marks=with_brought(lifted, done) if totals else lifted,
        good=good,
        valid=valid,
        totals=totals,
    )


def _storable(rows: DataFrame) -> DataFrame:
    """The rows with types that Parquet has: nothing but nulls is text, and so is any reason."""
    return rows.select(
        *(
            F.col(field.name).cast("string").alias(field.name)
            if field.name == "reason" or isinstance(field.dataType, NullType)
            else field.name
            for field in rows.schema
        )
    )


SMALL: Final = 4 * 2**20
"""Most bytes of all files for which it is tried whether their rows are few."""


def open_acks(
    spark: SparkSession,
    dataset: Dataset,
    totals: Sequence[str],
    replaced: Mapping[str, str],
    *,
    by_ordinal: bool,
) -> tuple[DataFrame, ParquetFiles | None, bool]:
    """Open a dataset of acknowledgements.

    Args:
        spark: the session.
        dataset: the dataset.
        totals: that items bring something to.
        replaced: as for ``open_input``.
        by_ordinal: objects of JSON have an ordinal, and no item.

    Returns:
        The rows, with the columns that name items; the files, if tasks can read them themselves; and whether
        the rows may be few.

    Raises:
        InvalidRequest: the dataset cannot be read.
    """
    name, other = ("ordinal", "item") if by_ordinal else ("item", "ordinal")
    fields = list(dict.fromkeys((name, other, "batch_id", "reason", *totals)))
    opened = open_input(spark, dataset, fields=fields, replaced=replaced)
    rows = with_names(opened.rows, fields)
    if opened.format is DatasetFormat.JSON:
        _check_totals(rows, dataset.place, totals)
        rows = rows.withColumn(name, F.coalesce(name, other)).drop(other)
    if opened.format in {DatasetFormat.CSV, DatasetFormat.JSON} and name in rows.columns:
        rows = rows.withColumn(name, F.coalesce(marked(), name))
    files = opened.files
    small = files is not None and len(files) <= TASKS and sum(file.size for file in files) <= SMALL
    return rows, _parquet_files(spark, opened, fields), small


def _check_totals(rows: DataFrame, path: str, totals: Sequence[str]) -> None:
    """Refuse a total that no object of JSON has, since any text would have it as a field.

    Raises:
        InvalidRequest: no row has a value for a total.
    """
    for total in totals:
        if rows.where(F.col(total).isNotNull()).isEmpty() and not rows.isEmpty():
            raise InvalidRequest(f"no row of {path} has a field {total} with what its item brings")


def _parquet_files(spark: SparkSession, opened: Opened, fields: Sequence[str]) -> ParquetFiles | None:
    """The files that tasks can read themselves.

    Returns:
        None if folders have columns that the files do not have, or if pyarrow cannot read the files here,
        perhaps because only Spark has the credentials; then Spark reads them.
    """
    if opened.format is not DatasetFormat.PARQUET or not opened.files:
        return None
    folders = {
        part.partition("=")[0].lower()
        for file in opened.files
        for part in file.path.split("/")[:-1]
        if "=" in part
    }
    if folders & set(fields):
        return None
    try:
        files = ParquetFiles(opened.files, exact=case_sensitive(spark), spark=spark)
        _ = files.schema  # of the first file, which has to be opened for it
    except (pa.ArrowException, OSError) as error:
        first = opened.files[0].path
        say(f"ack: pyarrow cannot read {first}, so Spark reads all files, slower: {error}", sys.stderr)
        return None
    return files
