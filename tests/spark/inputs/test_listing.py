"""The files of a dataset: the same ones whatever the format, or none by mistake."""

import os

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.opening import fingerprint_of, open_input
from tests.spark.datasets import FIELDS, opened, parquet


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_the_same_files_are_read_whatever_the_format(spark, tmp_path, format_):
    # Given files in folders below, hidden ones, and names that are patterns, with spaces or umlauts
    root = tmp_path / "a b ü"
    names = ["x", "sub/y", "day=1/z", "[1] {x}", "_day=1/w", "100%25"]
    for name in (*names, "_hidden", ".hidden", "_temporary/t", "sub/_t/t"):
        file = root / f"{name}.{format_}"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = name.rpartition("/")[2]
        if format_ == "parquet":
            parquet(file, item=[text])
        else:
            file.write_text(f"item\n{text}\n")

    for path in (root, f"file://{root}/"):
        found = open_input(spark, Dataset(str(path), format_), fields=FIELDS).rows.select("item")
        assert {row[0] for row in found.collect()} == {name.rpartition("/")[2] for name in names}

    one = f"{root}/[1] {{x}}.{format_}"
    assert [row[0] for row in opened(spark, one)] == ["[1] {x}"]
    assert [row[0] for row in opened(spark, f"{root}/s*/*.{format_}")] == ["y"]


@pytest.mark.parametrize("path", ["nowhere", "nowhere/*"])
def test_what_is_not_there_is_refused_by_its_name(spark, tmp_path, path):
    with pytest.raises(InvalidRequest, match="cannot be read: ") as refused:
        opened(spark, tmp_path / path)
    assert str(refused.value).startswith(f"{tmp_path}/{path} cannot be read: ")


def test_links_to_folders_beside_are_followed(spark, tmp_path):
    parquet(tmp_path / "in" / "sub" / "x.parquet", item=["a"])
    parquet(tmp_path / "other" / "y.parquet", item=["b"])
    (tmp_path / "in" / "more").symlink_to(tmp_path / "other")
    assert sorted(opened(spark, tmp_path / "in")) == [("a", None), ("b", None)]


def test_a_file_that_has_the_name_of_a_pattern_is_looked_at_by_its_name(spark, tmp_path):
    parquet(tmp_path / "[ab]" / "x.parquet", item=["x"])
    parquet(tmp_path / "a" / "y.parquet", item=["y"])
    assert opened(spark, tmp_path / "[ab]") == [("x", None)]


@pytest.mark.parametrize("format_", ["csv", "json", "parquet", "orc"])
def test_a_folder_without_files_or_of_empty_ones_has_no_rows(spark, tmp_path, format_):
    assert opened(spark, tmp_path, format_) == []
    (tmp_path / f"0.{format_}").write_text("")
    assert opened(spark, tmp_path, format_) == []
    assert opened(spark, tmp_path / f"0.{format_}") == []


def test_a_fingerprint_is_of_names_sizes_and_times(spark, tmp_path):
    file, given = tmp_path / "a.csv", Dataset(str(tmp_path), "csv")
    file.write_text("item\na\n")
    before = fingerprint_of(spark, given)
    assert fingerprint_of(spark, given) == before

    file.write_text("item\nb\n")
    os.utime(file, (2_000_000_000, 2_000_000_000))
    assert fingerprint_of(spark, given) != before


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("work/rejects/part-0.parquet", "work//rejects"),
        ("*/rejects", "work/rejects"),
        ("link", "file:{root}/work/rejects"),
        ("work/rejects", "link/rejects"),
    ],
)
def test_a_dataset_in_a_folder_that_is_replaced_is_refused(spark, tmp_path, path, folder):
    # Given a folder that has two names
    parquet(tmp_path / "work" / "rejects" / "part-0.parquet", item=["x"])
    (tmp_path / "link").symlink_to(tmp_path / "work")
    path, folder = (
        one.format(root=tmp_path) if "{root}" in one else f"{tmp_path}/{one}" for one in (path, folder)
    )
    # When it is a dataset, or a part of one, then it is not replaced by what the job makes of it
    with pytest.raises(InvalidRequest, match=r"which this job replaces; name another folder with --work"):
        open_input(spark, Dataset(path), fields=FIELDS, replaced={folder: "--work"})


@pytest.mark.parametrize("folder", ["acks-2", "ac", "acks/_work"])
def test_a_dataset_beside_what_is_replaced_is_read(spark, tmp_path, folder):
    parquet(tmp_path / "acks" / "part-0.parquet", item=["x"])
    replaced = {f"{tmp_path}/{folder}": "--work"}
    found = open_input(spark, Dataset(f"{tmp_path}/acks"), fields=FIELDS, replaced=replaced)
    assert found.rows.count() == 1


@pytest.mark.parametrize("path", ["acks/", "link"])
def test_a_folder_in_the_dataset_is_refused_before_it_is_written(spark, tmp_path, path):
    parquet(tmp_path / "acks" / "x.parquet", item=["x"])
    (tmp_path / "link").symlink_to(tmp_path / "acks")
    replaced = {f"{tmp_path}/acks/work/rows": "--work"}
    with pytest.raises(InvalidRequest, match="so the next run would read what this one writes"):
        open_input(spark, Dataset(f"{tmp_path}/{path}"), fields=FIELDS, replaced=replaced)
    # But a file, or a pattern, is no more than it is
    for some in ("acks/x.parquet", "acks/*.parquet"):
        open_input(spark, Dataset(f"{tmp_path}/{some}"), fields=FIELDS, replaced=replaced)


def test_a_table_is_refused_by_its_files(spark, tmp_path):
    spark.range(3).write.mode("overwrite").option("path", f"{tmp_path}/fleet").saveAsTable("fleet_of_mine")
    table = Dataset("fleet_of_mine", "table")
    try:
        with pytest.raises(InvalidRequest, match="which this job replaces"):
            open_input(spark, table, fields=FIELDS, replaced={f"{tmp_path}/fleet": "--output"})
    finally:
        spark.sql("DROP TABLE fleet_of_mine")
