"""Files and rows give the same marks and rejects, whatever the input and its partitions."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from fanin.spark.ack.coalescer import pages_from_rows
from fanin.spark.ack.coalescing import coalesce_few
from fanin.spark.ack.input_schema import InputSchema, normalize
from fanin.spark.ack.ledger_writes import partition_marks
from fanin.spark.ack.page_merger import merge
from fanin.spark.ack.parquet_files import pages_from_files
from tests.spark.given import Given, batch, block, items_of, parquet_files

BATCH = batch(7, 600_000)
SOURCE = Given((BATCH,))
FIRST, SECOND = block(BATCH, 0, 200_000), block(BATCH, 200_000, 400_000)


def id_of(ordinal: int) -> str:
    group = FIRST if ordinal < FIRST.size else SECOND
    return f"{group.prefix}:{ordinal - group.first}"


def of_rows(rows: DataFrame, schema: InputSchema) -> DataFrame:
    """``MERGED`` of rows that Spark hands to tasks, computed once."""
    pages = pages_from_rows(normalize(rows, schema), schema, SOURCE)
    return merge(pages, schema, SOURCE).localCheckpoint()


def of_files(spark: SparkSession, folder: Path, schema: InputSchema) -> DataFrame:
    """``MERGED`` of files that tasks read themselves, computed once."""
    pages = pages_from_files(spark, parquet_files(folder), schema, SOURCE)
    return merge(pages, schema, SOURCE).localCheckpoint()


def marks_of(merged: DataFrame) -> DataFrame:
    """``MARKS`` of ``MERGED``, as one task writes them."""
    return partition_marks(merged, 1)


@pytest.mark.usefixtures("any_ansi")
def test_files_and_rows_agree_on_ids(spark, tmp_path):
    # Given ids in random order in three partitions: bits 63, a whole window, repeats, and bad rows
    rng = random.Random(3)
    ordinals = [63, 63, 127, 127, 127, *range(4_096, 4_300), *(rng.randrange(600_000) for _ in range(500))]
    odd = ["", "a\nb:3", id_of(3) + " ", f"{FIRST.prefix}:03", f"{FIRST.prefix}:12345678901"]
    bad: list[str | None] = [None, None, "x", "x", *odd, f"{FIRST.prefix}:200000"]
    values = [*map(id_of, ordinals), *bad]
    rng.shuffle(values)
    rows = spark.createDataFrame([(value,) for value in values], "item string").repartition(3)
    rows.write.parquet(str(tmp_path / "acks"))
    schema = InputSchema.of(rows.columns, None)

    done = [of_rows(rows, schema), of_files(spark, tmp_path / "acks", schema)]
    # Then the marks are the set, each word once, and every other row is a reject
    found = [marks_of(frame) for frame in done]
    assertDataFrameEqual(*found)
    assert items_of(found[0].collect()) == Counter((7, n) for n in set(ordinals))
    expected = Counter({(None, "null"): 2, ("x", "malformed"): 2})
    expected.update((value, "malformed") for value in odd)
    expected[f"{FIRST.prefix}:200000", "foreign"] = 1
    for ordinal, times in Counter(ordinals).items():
        expected[id_of(ordinal), "duplicate"] += times - 1
    for frame in done:
        rejects = frame.where("reason IS NOT NULL").select("value", "reason").collect()
        assert Counter(map(tuple, rejects)) == +expected
        assert frame.agg({"rows": "sum"}).collect()[0][0] == len(values)


@pytest.mark.usefixtures("any_ansi")
def test_few_rows_and_many_agree_on_ordinals_as_text(spark):
    # Given ordinals as a CSV has them, some of which are not numbers, or are not written as these are
    good = ["5", "5", "63.0", "599999", "0007", "9.00"]
    odd = ["x", "1.5", "", "9" * 30, " 8 ", "8 ", "+8", "1e3", "8.", ".0", "8.0.0", "0x8", "8_0", "٣", "NaN"]
    values = [*good, "600000", "-1", "-1.0", str(2**63 - 1), None, *odd]
    rows = spark.createDataFrame([(value,) for value in values], "ordinal string")
    schema = InputSchema.of(rows.columns, 7)

    done = of_rows(rows, schema)
    few = coalesce_few(rows, schema, SOURCE)
    # Then both take the whole numbers and leave out the others
    assert few is not None
    marks: list[Any] = [[tuple(mark.values()) for mark in few.marks.to_pylist()], marks_of(done).collect()]
    for found in marks:
        assert items_of(found) == Counter((7, n) for n in (5, 7, 9, 63, 599_999))
    expected = Counter({('{"ordinal":null}', "null"): 1, ('{"ordinal":5}', "duplicate"): 1})
    expected.update((f'{{"ordinal":{number}}}', "foreign") for number in (600_000, -1, -1, 2**63 - 1))
    expected.update((f'{{"ordinal":"{text}"}}', "malformed") for text in odd)
    rejects: list[Any] = [
        [(value, reason) for value, reason, _ in few.rejects],
        done.where("reason IS NOT NULL").select("value", "reason").collect(),
    ]
    for left_out in rejects:
        assert Counter((value.replace(": ", ":"), reason) for value, reason in left_out) == expected


@pytest.mark.parametrize("ordinals", [[63], []])
def test_one_row_among_empty_partitions_is_one_mark_and_none_is_none(spark, tmp_path, ordinals):
    # Given one row among many empty partitions, with bit 63; or no row at all
    rows = spark.createDataFrame([(n,) for n in ordinals], "ordinal long").repartition(6)
    rows.write.parquet(str(tmp_path / "acks"))
    schema = InputSchema(by_id=False, batch_id=7)

    for done in (of_rows(rows, schema), of_files(spark, tmp_path / "acks", schema)):
        marks = [tuple(mark)[:4] for mark in marks_of(done).collect()]
        assert marks == [(7, 0, 0, -(2**63)) for _ in ordinals]


@pytest.mark.soak
def test_ten_thousand_empty_partitions_and_a_huge_one(spark, tmp_path):
    # Given most of a million rows in one partition, ten thousand without any, and as many files
    schema = InputSchema(by_id=False, batch_id=7)
    huge = spark.range(0, 650_000, 1, 1).selectExpr("id % 600000 AS ordinal")
    empty = spark.range(0, 10_000, 1, 10_000).where("id < 0").withColumnRenamed("id", "ordinal")
    huge.unionByName(empty).write.parquet(str(tmp_path / "acks"))
    for number in range(10_000):
        spark_file = tmp_path / "acks" / f"empty-{number}.parquet"
        pq.write_table(pa.table({"ordinal": pa.array([], pa.int64())}), spark_file)

    rows = huge.unionByName(empty)
    for done in (of_rows(rows, schema), of_files(spark, tmp_path / "acks", schema)):
        # Then everything is found, and all repeats are rejects
        assert items_of(marks_of(done).collect()) == Counter((7, n) for n in range(600_000))
        assert done.where("reason = 'duplicate'").count() == 50_000
