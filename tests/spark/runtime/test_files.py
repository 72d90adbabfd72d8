"""Small files next to datasets, on the file systems that Spark uses."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from fanin.spark.runtime.files import Folder


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Folder:
    return Folder(spark, f"{tmp_path}/made/")


def test_a_file_is_read_as_it_was_written(folder: Folder) -> None:
    assert folder.read("note.json") is None
    assert folder.write("note.json", "☂ one\n")
    assert folder.read("note.json") == "☂ one\n"


def test_a_file_is_replaced_unless_it_should_stay(folder: Folder) -> None:
    assert folder.write("note", "first")
    assert not folder.write("note", "second", replace=False)
    assert folder.read("note") == "first"
    assert folder.write("note", "third")
    assert folder.read("note") == "third"


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_of_writers_at_the_same_time_one_writes_a_file_that_should_stay(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
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
def test_a_driver_that_dies_when_it_names_a_file_leaves_it_whole_or_missing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
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


def test_an_error_that_is_not_about_a_file_in_the_way_is_raised(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "made").write_text("not a folder")
    with pytest.raises(Py4JJavaError):
        folder.write("note", "text", replace=False)


def test_a_dataset_is_finished_when_spark_says_so(
    spark: SparkSession, folder: Folder, tmp_path: Path
) -> None:
    (tmp_path / "made" / "half").mkdir(parents=True)
    spark.range(3).write.parquet(folder.at("rows"))

    assert folder.at("rows") == f"{tmp_path}/made/rows"
    assert [folder.finished(name) for name in ("rows", "half", "nothing")] == [True, False, False]


def test_a_text_is_utf_8_and_has_no_checksum(spark: SparkSession, tmp_path: Path) -> None:
    Folder(spark, f"{tmp_path}/").write("report.html", "<p>☂")
    assert (tmp_path / "report.html").read_text("utf-8") == "<p>☂"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
