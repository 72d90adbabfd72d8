"""A dataset replaces that of an earlier run, and nothing else."""

import shutil

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.runtime.datasets import check_apart, check_replaceable, replace_dataset
from fanin.spark.runtime.files import Folder
from tests.spark.datasets import parquet
from tests.unit.spark.runtime.file_systems import Raised

LEFT = ["_temporary/0/part-0", "_SUCCESS", "_committed_1", ".part-0.crc", ".spark-staging-1/x", "part-9"]
"""What Spark, its committers, and drivers that died leave in a dataset."""


def test_a_dataset_replaces_that_of_an_earlier_run(spark, tmp_path):
    folder = tmp_path / "made"
    for count in (3, 2):
        assert check_replaceable(spark, str(folder)) == (count == 2)
        made = replace_dataset(spark.range(count), str(folder))
        assert {row["id"] for row in made.collect()} == set(range(count))
    for name in LEFT:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    assert check_replaceable(spark, f"file:{folder}/")
    assert replace_dataset(spark.range(1), f"file:{folder}/").count() == 1


OTHERS = ["orders.csv", "day=1/part-0.parquet", "partition", "part", "pa", "_delta_log/0.json"]
HIDDEN = [".git/x", "_archive/x", "_notes", ".partners"]


def test_a_folder_with_anything_else_stays_as_it_is(spark, tmp_path):
    # Given datasets of an earlier run, which found an empty folder
    (tmp_path / "made").mkdir()
    replace_dataset(spark.range(3), f"{tmp_path}/made")
    for name in (*OTHERS, *HIDDEN):
        # with something of somebody's
        folder = tmp_path / name.replace("/", "-")
        shutil.copytree(tmp_path / "made", folder)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("mine")
        before = sorted(folder.rglob("*"))
        # When a dataset is to replace one, then nothing is deleted, and the error names what is in the way
        told = f": {name.partition('/')[0]} is in it. It was left as it is"
        with pytest.raises(InvalidRequest, match=told):
            check_replaceable(spark, str(folder))
        with pytest.raises(InvalidRequest, match=told):
            replace_dataset(spark.range(2), str(folder))
        assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("name", ["part-0.parquet", "part-0.csv", "part-0.json"])
def test_a_dataset_that_no_job_wrote_stays_as_it_is(spark, tmp_path, name):
    # Given a dataset of somebody's, whose files have names like those of Spark
    parquet(tmp_path / name, vin=["x"], owner=["y"])
    told = "with the columns vin, owner, was not written by a job of fanin"
    if not name.endswith("parquet"):
        (tmp_path / name).write_text("vin,owner,and,more\n")
        told = "is not a Parquet file"
    with pytest.raises(InvalidRequest, match=told):
        check_replaceable(spark, str(tmp_path))


def test_a_file_is_not_replaced_by_a_dataset(spark, tmp_path):
    parquet(tmp_path / "part-0.parquet", item=["x"])
    with pytest.raises(InvalidRequest, match=r"part-0\.parquet is in it"):
        replace_dataset(spark.range(2), str(tmp_path / "part-0.parquet"))
    assert (tmp_path / "part-0.parquet").is_file()


def test_the_name_of_a_folder_is_no_pattern(spark, tmp_path):
    (tmp_path / "a1").mkdir()
    for again in (False, True):
        assert check_replaceable(spark, f"{tmp_path}/a[1] {{x}}*") == again
        assert replace_dataset(spark.range(3), f"{tmp_path}/a[1] {{x}}*").count() == 3
    assert not list((tmp_path / "a1").iterdir())


def test_a_file_system_that_does_not_answer_is_left_to_spark(spark, tmp_path, monkeypatch):
    # Given a volume of Databricks, which only Spark itself reads and writes
    def entries(_folder: Folder, _pattern: str) -> None:
        raise Raised("java.lang.UnsupportedOperationException: No operations allowed on this path")

    monkeypatch.setattr(Folder, "entries", entries)
    assert not check_replaceable(spark, f"{tmp_path}/made")
    assert replace_dataset(spark.range(3), f"{tmp_path}/made").count() == 3


@pytest.mark.parametrize("folder", ["work", "work/failed/x", "link/failed"])
def test_rejects_have_a_place_apart(spark, tmp_path, folder):
    (tmp_path / "work").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "work")
    with pytest.raises(InvalidRequest, match=r"this job writes something else to .*/work/failed"):
        check_apart(spark, "rejects", f"{tmp_path}/{folder}", [f"{tmp_path}/work/failed"])
    check_apart(spark, "rejects", f"{tmp_path}/work/rejects", [f"{tmp_path}/work/failed"])


def test_folders_with_names_of_parts_stay_as_they_are(spark, tmp_path):
    parquet(tmp_path / "part-2026" / "x.parquet", id=[1])
    with pytest.raises(InvalidRequest, match="part-2026 is in it"):
        check_replaceable(spark, str(tmp_path))
