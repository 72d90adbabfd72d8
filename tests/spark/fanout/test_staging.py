"""Contiguous ordinals: whatever shuffles, retries and re-reads do to the rows."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.testing import assertDataFrameEqual

from fanin.errors import InvalidRequest, ServiceUnavailable
from fanin.spark.fanout import staging
from fanin.spark.fanout.staging import ORDINAL, PART, stage
from tests.spark.setting import setting

SOURCE = {"path": "there", "format": "parquet"}


def staged(spark: SparkSession, folder: Path, rows: DataFrame) -> DataFrame:
    return stage(spark, str(folder), SOURCE, lambda: (rows, None)).read(spark)


def assert_contiguous(numbered: DataFrame, rows: int) -> None:
    """Every ordinal from 0 to ``rows`` - 1 is there once."""
    (found,) = numbered.agg(
        F.count("*").alias("rows"),
        F.countDistinct(ORDINAL).alias("distinct"),
        F.min(ORDINAL).alias("first"),
        F.max(ORDINAL).alias("last"),
    ).collect()
    ends = (0, rows - 1) if rows else (None, None)
    assert (found["rows"], found["distinct"], found["first"], found["last"]) == (rows, rows, *ends)


def never() -> tuple[DataFrame, None]:
    raise AssertionError("what is staged is not made again")


@pytest.mark.parametrize(
    ("rows", "partitions"), [(0, 1), (1, 7), (1_003, 5)], ids=["empty", "one row of seven partitions", "many"]
)
def test_ordinals_are_contiguous(spark, tmp_path, rows, partitions):
    frame = spark.range(0, rows, 1, partitions).withColumnRenamed("id", "value")

    numbered = staged(spark, tmp_path, frame)

    assert_contiguous(numbered, rows)
    assertDataFrameEqual(numbered.select("value"), frame)


def test_the_rows_of_a_driver_that_died_are_not_used(spark, tmp_path):
    # Given an attempt that was written, but not counted
    (tmp_path / "rows-dead").mkdir()
    spark.range(5).withColumn(PART, F.lit(0)).write.mode("overwrite").parquet(str(tmp_path / "rows-dead"))
    # When the rows are staged, then they are those of the new attempt, and are not staged again
    assert_contiguous(staged(spark, tmp_path, spark.range(3)), 3)
    assert stage(spark, str(tmp_path), SOURCE, never).rows == 3


def test_of_two_drivers_the_first_to_finish_counts_for_both(spark, tmp_path):
    # Given a driver that finishes while another is still making its rows
    def make() -> tuple[DataFrame, None]:
        faster.append(stage(spark, str(tmp_path), SOURCE, lambda: (spark.range(4), None)))
        return spark.range(4), None

    faster: list[object] = []
    # When the other finishes, then it has the rows of the first
    assert [stage(spark, str(tmp_path), SOURCE, make)] == faster


def test_a_folder_belongs_to_one_input(spark, tmp_path):
    staged(spark, tmp_path, spark.range(3))

    with pytest.raises(InvalidRequest, match="the staging of another input"):
        stage(spark, str(tmp_path), {**SOURCE, "body": "x"}, never)


def test_a_folder_belongs_to_the_data_that_it_was_made_of(spark, tmp_path):
    # Given rows of yesterday's data
    yesterday, today = ({"files": 1, "bytes": 9, "digest": digest * 64} for digest in "ab")
    first = stage(spark, str(tmp_path), SOURCE, lambda: (spark.range(3), yesterday), data=lambda: yesterday)
    # When there is other data at the same place, then it is not taken for the same
    with pytest.raises(
        InvalidRequest, match=r"other data at the same place: 1 files of 9 bytes \(aaaaaaaa\) then"
    ):
        stage(spark, str(tmp_path), SOURCE, never, data=lambda: today)
    # And data that is the same, or gone, is sent as it was staged
    for data in (yesterday, None):
        assert stage(spark, str(tmp_path), SOURCE, never, data=lambda data=data: data) == first


def test_data_that_changes_while_it_is_staged_is_noticed(spark, tmp_path):
    before, now = {"digest": "a"}, {"digest": "b"}

    with pytest.raises(ServiceUnavailable, match="changed while it was staged"):
        stage(spark, str(tmp_path), SOURCE, lambda: (spark.range(3), before), data=lambda: now)
    assert not (tmp_path / "staging.json").exists()


def test_rows_that_the_file_system_lost_are_noticed(spark, tmp_path, monkeypatch):
    # Given a file system that loses the first row of what is written
    counts = staging._counts

    def lossy(session: SparkSession, path: str, schema: object) -> object:
        session.read.parquet(path).where("_r > 0").write.parquet(path + "-lossy")
        return counts(session, path + "-lossy", schema)

    monkeypatch.setattr(staging, "_counts", lossy)
    # When rows are staged, then that is noticed, and nothing is left that a later run would use
    with pytest.raises(ServiceUnavailable, match="lost or doubled"):
        staged(spark, tmp_path, spark.range(0, 4, 1, 1))
    monkeypatch.undo()
    assert_contiguous(staged(spark, tmp_path, spark.range(4)), 4)


def test_a_row_has_the_same_ordinal_at_every_reading(spark, as_deployed, tmp_path):
    # Given rows behind a shuffle that adaptive execution may cut differently each time
    frame = spark.range(2_000).repartition(4, F.rand()).select("id", (F.col("id") % 7).alias("mod"))
    first = staged(spark, tmp_path, frame)
    before = {row["id"]: row[ORDINAL] for row in first.collect()}
    # When they are read again, in other partitions, by a driver that comes later
    with setting(spark, "spark.sql.files.maxPartitionBytes", "4096"):
        again = stage(spark, str(tmp_path), SOURCE, never).read(spark)
        after = {row["id"]: row[ORDINAL] for row in again.collect()}
    # Then every row has its ordinal
    assert after == before
    assert_contiguous(again, 2_000)


@pytest.mark.soak
def test_ten_thousand_empty_partitions(spark, tmp_path):
    assert_contiguous(staged(spark, tmp_path, spark.range(0, 10, 1, 10_000)), 10)
