"""The three ways on Spark: the same marks and the same rejects, whatever the input and its partitions."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from fanin.domain.tree import Tree
from fanin.errors import InvalidRequest
from fanin.spark.ack.input_schema import Form
from fanin.spark.ack.parquet_files import Files
from fanin.spark.ack.sql_words import pages_of_words
from fanin.spark.ack.strategy import (
    Way,
    form_of,
    marks,
    merged,
    normal,
    pages_of_files,
    pages_of_rows,
    readable,
    way_of,
)
from tests.spark.given import Given, batch, block, items_of

BATCH = batch(7, 600_000)
SOURCE = Given((BATCH,))
FIRST, SECOND = block(BATCH, 0, 200_000), block(BATCH, 200_000, 400_000)


def id_of(ordinal: int) -> str:
    group = FIRST if ordinal < FIRST.size else SECOND
    return f"{group.prefix}:{ordinal - group.first}"


def coalesced(way: Way, rows: DataFrame, form: Form, folder: Path) -> DataFrame:
    """``MERGED`` by one of the ways, computed once."""
    if way is Way.PARQUET:
        pages = pages_of_files(rows.sparkSession, Files(str(folder)), form, SOURCE)
    else:
        make = pages_of_words if way is Way.SQL else pages_of_rows
        pages = make(normal(rows, form), form, SOURCE)
    return merged(pages, form, SOURCE).localCheckpoint()


@pytest.mark.usefixtures("any_ansi")
def test_of_ids_agree_with_each_other_and_with_a_set(spark: SparkSession, tmp_path: Path) -> None:
    # Given ids in random order in three partitions: bits 63, a whole window, repeats, and others
    rng = random.Random(3)  # noqa: S311
    ordinals = [63, 63, 127, 127, 127, *range(4_096, 4_300), *(rng.randrange(600_000) for _ in range(500))]
    bad: list[str | None] = [None, None, "x", "x", id_of(3) + " ", f"{FIRST.prefix}:200000"]
    values = [*map(id_of, ordinals), *bad]
    rng.shuffle(values)
    rows = spark.createDataFrame([(value,) for value in values], "item string").repartition(3)
    rows.write.parquet(str(tmp_path / "acks"))
    form = form_of(rows.columns, None)

    done = {way: coalesced(way, rows, form, tmp_path / "acks") for way in Way}

    # Then the marks are the set, each word once, and every other row is a reject
    found = {way: marks(frame, SOURCE) for way, frame in done.items()}
    assertDataFrameEqual(found[Way.PARQUET], found[Way.PAGES])
    assertDataFrameEqual(found[Way.SQL], found[Way.PAGES])
    assert items_of(found[Way.SQL].collect()) == Counter((7, n) for n in set(ordinals))
    expected = Counter({(None, "null"): 2, ("x", "malformed"): 2, (id_of(3) + " ", "malformed"): 1})
    expected[f"{FIRST.prefix}:200000", "foreign"] = 1
    for ordinal, times in Counter(ordinals).items():
        expected[id_of(ordinal), "duplicate"] += times - 1
    for frame in done.values():
        rejects = frame.where("reason IS NOT NULL").select("value", "reason").collect()
        assert Counter(map(tuple, rejects)) == +expected
        assert frame.agg({"rows": "sum"}).collect()[0][0] == len(values)


@pytest.mark.usefixtures("any_ansi")
def test_of_ordinals_as_text_agree(spark: SparkSession, tmp_path: Path) -> None:
    # Given ordinals as a CSV has them, some of them none
    good = ["5", "5", "63", "599999"]
    values = [*good, "600000", "-1", "x", "1.5", "", None, "9" * 30]
    rows = spark.createDataFrame([(value,) for value in values], "ordinal string")
    form = form_of(rows.columns, 7)

    done = {way: coalesced(way, rows, form, tmp_path) for way in (Way.PAGES, Way.SQL)}

    expected = Counter({('{"ordinal": null}', "null"): 1, ('{"ordinal": 5}', "duplicate"): 1})
    expected.update({('{"ordinal": 600000}', "foreign"): 1, ('{"ordinal": -1}', "foreign"): 1})
    expected.update((f'{{"ordinal":"{text}"}}', "malformed") for text in ("x", "1.5", "", "9" * 30))
    for frame in done.values():
        assert items_of(marks(frame, SOURCE).collect()) == Counter({(7, n): 1 for n in (5, 63, 599_999)})
        rejects = [
            (r[0].replace(": ", ":"), r[1])
            for r in frame.where("reason IS NOT NULL").select("value", "reason").collect()
        ]
        assert Counter(rejects) == Counter({(k[0].replace(": ", ":"), k[1]): n for k, n in expected.items()})


@pytest.mark.parametrize("way", list(Way))
def test_nothing_one_row_and_empty_partitions_are_no_special_cases(
    spark: SparkSession, tmp_path: Path, way: Way
) -> None:
    # Given one row among many empty partitions, and no row at all
    one = spark.createDataFrame([(63,)], "ordinal long").repartition(40)
    none = one.where("ordinal < 0")
    if way is Way.PARQUET:
        for name, rows in (("one", one), ("none", none)):
            rows.write.parquet(str(tmp_path / name))

    found = {
        name: marks(coalesced(way, rows, Form(ids=False, batch_id=7), tmp_path / name), SOURCE).collect()
        for name, rows in (("one", one), ("none", none))
    }

    # Then there is one mark, of bit 63, and none
    assert [tuple(mark) for mark in found["one"]] == [(7, 0, 0, -(2**63))]
    assert found["none"] == []


def test_many_partitions_are_joined_to_tasks_and_nothing_runs_to_count_them(spark: SparkSession) -> None:
    # Given few partitions, many, and some that Spark knows only when it has run the query
    form, most = Form(ids=False, batch_id=7), 32 * spark.sparkContext.defaultParallelism
    few, many = (spark.range(0, 10, 1, number).toDF("ordinal") for number in (most, most + 1))
    shuffled = spark.range(10).toDF("ordinal").repartition(most + 1)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup

    before = len(jobs())
    pages = [pages_of_rows(normal(rows, form), form, SOURCE) for rows in (few, many, shuffled)]

    # Then there are no more than that, and rows of few do not go through a coalesce
    assert len(jobs()) == before
    plans = [frame._jdf.queryExecution().executedPlan().toString() for frame in pages]
    assert ["Coalesce" in plan for plan in plans] == [False, True, True]
    assert pages[1].rdd.getNumPartitions() == most


@pytest.mark.soak
def test_ten_thousand_empty_partitions_and_a_huge_one(spark: SparkSession, tmp_path: Path) -> None:
    # Given most of a million rows in one partition, ten thousand without any, and as many files
    form = Form(ids=False, batch_id=7)
    huge = spark.range(0, 650_000, 1, 1).selectExpr("id % 600000 AS ordinal")
    empty = spark.range(0, 10_000, 1, 10_000).where("id < 0").withColumnRenamed("id", "ordinal")
    huge.unionByName(empty).write.parquet(str(tmp_path / "acks"))
    for number in range(10_000):
        spark_file = tmp_path / "acks" / f"empty-{number}.parquet"
        pq.write_table(pa.table({"ordinal": pa.array([], pa.int64())}), spark_file)

    rows = huge.unionByName(empty)
    for way in (Way.PARQUET, Way.PAGES):
        done = coalesced(way, rows, form, tmp_path / "acks")

        # Then everything is found, and all repeats are told
        assert set(marks(done, SOURCE).collect()) == {
            (7, mark.level, mark.number, mark.mask - (mark.mask >> 63 << 64))
            for mark in Tree().cover(0, 600_000, 600_000)
        }
        assert done.where("reason = 'duplicate'").count() == 50_000


def test_the_way_is_chosen_by_the_input(spark: SparkSession, tmp_path: Path) -> None:
    # Given ordinals in order, in no order, and few
    form = Form(ids=False, batch_id=7)
    ordered = spark.range(20_000).withColumnRenamed("id", "ordinal")
    scattered = ordered.selectExpr("(ordinal * 7919) % 600000 AS ordinal")
    ordered.write.parquet(str(tmp_path / "files"))

    assert way_of(ordered, form) is Way.SQL
    assert way_of(scattered, form) is Way.PAGES
    assert way_of(scattered.limit(100), form) is Way.SQL
    # And files are read by the tasks only if the columns are in them, as numbers
    files = Files(str(tmp_path / "files"))
    assert readable(files, form)
    assert not readable(files, Form(ids=False))
    assert not readable(files, Form(ids=True))


def test_input_that_names_no_items_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="need a column item"):
        form_of(["ordinal", "id"], None)


def test_shares_have_every_row_group_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given files of several row groups, and tasks for less than a file
    monkeypatch.setattr("fanin.spark.ack.parquet_files._LEAST", 1_000)
    rows = spark.range(30_000).withColumnRenamed("id", "ordinal").repartition(3)
    rows.write.option("parquet.block.size", 20_000).option("parquet.page.size", 4_000).parquet(
        str(tmp_path / "files")
    )
    files = Files(str(tmp_path / "files"))

    shares = files.shares(7)
    form = Form(ids=False, batch_id=7)
    read = [
        row["ordinal"]
        for share in shares
        for r in files.read(share, form, reasons=False)
        for row in r.to_pylist()
    ]

    assert len(shares) == 7
    assert sorted(read) == list(range(30_000))
