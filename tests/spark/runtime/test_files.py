"""Files, columns, text and the session that all jobs use."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from fanin.spark.runtime.arrow import ddl, page
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.session import quiet_session, session
from fanin.spark.runtime.unreadable import (
    LINE,
    MARK,
    PROBLEM,
    UNREADABLE,
    marked,
    readable_columns,
    unmarked,
    unmarked_text,
)
from tests.spark.setting import setting


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Folder:
    return Folder(spark, f"{tmp_path}/made/")


def test_a_file_is_read_as_it_was_written(folder):
    assert folder.read("note.json") is None
    assert folder.write("note.json", "☂ one\n")
    assert folder.read("note.json") == "☂ one\n"


def test_a_file_is_replaced_unless_it_should_stay(folder):
    assert folder.write("note", "first")
    assert not folder.write("note", "second", replace=False)
    assert folder.read("note") == "first"
    assert folder.write("note", "third")
    assert folder.read("note") == "third"


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_of_writers_at_the_same_time_one_writes_a_file_that_should_stay(folder, tmp_path, monkeypatch, links):
    # Given a disk, or a mounted bucket, on which there are no links
    def refuse(_source: str, _target: str) -> None:
        raise PermissionError

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    # When writers come at the same time, or one after the other, then one of them writes
    with ThreadPoolExecutor(4 if links else 1) as pool:
        texts = [f"text {number}" for number in range(8)]
        wrote = list(pool.map(lambda text: folder.write("note", text, replace=False), texts))
    assert [text for text, mine in zip(texts, wrote, strict=True) if mine] == [folder.read("note")]
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["note"]


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_driver_that_dies_when_it_names_a_file_leaves_it_whole_or_missing(folder, monkeypatch, before):
    # Given a driver that dies around the step that gives a file its name; on HDFS and S3 unit tests try all
    link = os.link

    def die(source: str, target: str) -> None:
        if not before:
            link(source, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(os, "link", die)
        with pytest.raises(KeyboardInterrupt):
            folder.write("note", "first", replace=False)
    # Then the next one finds a whole file, or none
    assert folder.read("note") == (None if before else "first")
    assert folder.write("note", "second", replace=False) is before


def test_an_error_that_is_not_about_a_file_in_the_way_is_raised(folder, tmp_path):
    (tmp_path / "made").write_text("not a folder")
    with pytest.raises(Py4JJavaError):
        folder.write("note", "text", replace=False)


def test_a_dataset_is_finished_when_spark_says_so(spark, folder, tmp_path):
    (tmp_path / "made" / "half").mkdir(parents=True)
    spark.range(3).write.parquet(folder.at("rows"))

    assert folder.at("rows") == f"{tmp_path}/made/rows"
    assert [folder.finished(name) for name in ("rows", "half", "nothing")] == [True, False, False]


def test_a_text_is_utf_8_and_has_no_checksum(spark, tmp_path):
    Folder(spark, f"{tmp_path}/").write("report.html", "<p>☂")
    assert (tmp_path / "report.html").read_text("utf-8") == "<p>☂"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_text_is_marked(spark):
    rows = spark.createDataFrame([("5",), (None,)], f"{LINE} string")

    found = [row[0] for row in rows.select(marked()).collect()]

    assert found == [f"5{MARK}", None]


def test_a_mark_is_taken_off_the_same_way_in_sql_and_alone(spark):
    given = [
        (f"{{no{MARK}", "why"),
        (f"5{MARK}", None),
        ("x", "why"),
        ('{"b":"\uffff"}', "why"),
        ("", None),
        (None, "why"),
        (None, None),
    ]
    rows = spark.createDataFrame(given, "value string, detail string")

    found = [tuple(row) for row in unmarked(rows).collect()]

    assert found == [unmarked_text(value, detail) for value, detail in given]
    assert found[:4] == [("{no", UNREADABLE), ("5", UNREADABLE), ("x", "why"), ('{"b":"\uffff"}', "why")]


def test_a_mark_makes_a_number_none(spark):
    rows = spark.createDataFrame([("5",)], f"{LINE} string").select(marked().alias("ordinal"))
    assert rows.selectExpr("try_cast(ordinal AS BIGINT)").head()[0] is None


def test_columns_of_the_dataset_are_the_others(spark):
    frame = spark.createDataFrame([], f"item string, {LINE} string, {PROBLEM} string")
    assert readable_columns(frame) == ["item"]


COLUMNS = pa.schema(
    [
        ("part", pa.int8()),
        ("level", pa.int32()),
        ("batch_id", pa.int64()),
        ("complete", pa.bool_()),
        ("why", pa.string()),
        ("bits", pa.binary()),
        ("totals", pa.list_(pa.int64())),
    ]
)
ROWS = [(1, 2, 2**53, True, "torn", b"\x00\xff", [3]), (None,) * 7]


@pytest.mark.parametrize("rows", [ROWS, []], ids=("rows", "nothing"))
def test_a_page_passes_through_spark_as_it_was_declared(spark, rows):
    found = spark.range(0, 1, 1, 1).mapInArrow(lambda _: iter([page(COLUMNS, rows)]), ddl(COLUMNS))
    assert found.columns == COLUMNS.names
    assert [tuple(row) for row in found.collect()] == rows


def test_a_type_that_no_task_uses_is_refused():
    with pytest.raises(KeyError):
        ddl(pa.schema([("day", pa.date32())]))


def test_its_heap_has_its_full_size_from_the_start(spark):
    # In a heap that grows as needed, the collector stops all tasks again and again.
    jvm = spark._jvm
    assert jvm is not None
    heap = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
    assert heap.getInit() > 0.9 * heap.getMax()


def test_a_session_that_is_running_keeps_its_settings(spark):
    # Given a session with a time zone of its own, and without a setting that a job has
    zone, other = "spark.sql.session.timeZone", "spark.sql.adaptive.forceOptimizeSkewedJoin"
    with setting(spark, zone, "America/New_York"):
        # When it is asked for, then it is as it was
        assert session("mine", {other: "true"}).conf.get(zone) == "America/New_York"
        assert spark.conf.get(other) == "false"
        # And a job has its own settings for as long as it runs, although it fails
        found = []

        def fail() -> None:
            with quiet_session("job", {other: "true"}) as running:
                found.extend([running.conf.get(zone), running.conf.get(other)])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert found == ["UTC", "true"]
        assert (spark.conf.get(zone), spark.conf.get(other)) == ("America/New_York", "false")
