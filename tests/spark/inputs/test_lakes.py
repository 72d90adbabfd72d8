"""Folders that are tables are not read as plain files."""

import json
from pathlib import Path
from threading import Barrier

import pyarrow.parquet as pq
import pytest

from fanin.errors import InvalidRequest
from fanin.spark.inputs.listing import TableFolder, _Look, table_at
from tests.spark.datasets import opened, parquet

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def delta(tmp_path: Path) -> Path:
    """A Delta table as its log describes it: of its two files one counts."""
    parquet(tmp_path / "t" / "day=1" / "old.parquet", item=["deleted"])
    parquet(tmp_path / "t" / "day=1" / "new.parquet", item=["kept"])
    log = tmp_path / "t" / "_delta_log"
    log.mkdir()
    add = {"add": {"path": "day=1/new.parquet", "dataChange": True}}
    (log / "00000000000000000000.json").write_text(json.dumps(add))
    return tmp_path / "t"


@pytest.fixture
def iceberg(tmp_path: Path) -> Path:
    """The folders of an Iceberg table, with one snapshot."""
    parquet(tmp_path / "i" / "data" / "a.parquet", item=["a"])
    (tmp_path / "i" / "metadata").mkdir()
    (tmp_path / "i" / "metadata" / "v1.metadata.json").write_text('{"format-version": 2}')
    return tmp_path / "i"


@pytest.mark.parametrize("below", ["day=1", "day=1/old.parquet", "*", ".."])
def test_files_of_a_delta_table_are_not_read_as_they_are(spark, delta, below):
    with pytest.raises(InvalidRequest, match="t is a table of Delta, whose files also hold rows"):
        opened(spark, f"{delta}/{below}".rstrip("/"), "parquet")


@pytest.mark.parametrize("to", ["t/day=1", "t/day=1/old.parquet"])
def test_a_link_into_a_delta_table_is_not_read_as_it_is(spark, delta, to):
    link = delta.parent / "in" / "link"
    link.parent.mkdir()
    link.symlink_to(delta.parent / to)
    for path in (link, link.parent):
        with pytest.raises(InvalidRequest, match="t is a table of Delta, whose files also hold rows"):
            opened(spark, path, "parquet")


def test_a_folder_that_is_linked_into_a_delta_table_is_a_part_of_it(spark, delta, tmp_path):
    parquet(tmp_path / "elsewhere" / "x.parquet", item=["deleted"])
    (delta / "day=2").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidRequest, match="t is a table of Delta, whose files also hold rows"):
        opened(spark, delta / "day=2", "parquet")


def test_folders_of_another_machine_are_looked_at_side_by_side(spark, delta, monkeypatch):
    # Given folders of another machine, and two looks of which each waits for the other
    monkeypatch.setattr("fanin.spark.inputs.listing._LOCAL", "none here:")
    look, both, waiting = _Look.at, Barrier(2), iter(range(2))

    def met(self: _Look, folder: str) -> TableFolder | None:
        if next(waiting, None) is not None:
            both.wait(timeout=30)
        return look(self, folder)

    monkeypatch.setattr(_Look, "at", met)
    # When a folder of a table is read, then they meet, and the table is found
    with pytest.raises(InvalidRequest, match="t is a table of Delta, whose files also hold rows"):
        opened(spark, delta / "day=1", "parquet")


@pytest.mark.parametrize("below", ["data", ".."])
def test_files_of_an_iceberg_table_are_not_read_as_they_are(spark, iceberg, below):
    with pytest.raises(InvalidRequest, match="i is a table of Iceberg, whose files also hold rows"):
        opened(spark, f"{iceberg}/{below}".rstrip("/"), "parquet")


def test_a_hudi_table_is_refused(spark, tmp_path):
    parquet(tmp_path / "a.parquet", item=["a"])
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie" / "hoodie.properties").touch()
    with pytest.raises(InvalidRequest, match="--format table"):
        opened(spark, tmp_path)


@pytest.mark.parametrize(("name", "kind"), [("delta", "Delta"), ("iceberg", "Iceberg")])
def test_a_real_table_of_which_a_row_was_deleted_is_not_read_as_files(spark, name, kind):
    # Given a table that delta-rs 1.6.6 or PyIceberg 0.12.0 has written, and from which it has deleted a row
    table = DATA / name
    files = [
        file for file in table.rglob("*.parquet") if "deleted" in pq.read_table(file)["item"].to_pylist()
    ]
    assert len(files) == 1
    # When the folder, all files in it, or the file with that row are read as Parquet or as they are,
    # then the error says how to read the table
    for path in (table, f"{table}/*", files[0]):
        for format_ in ("parquet", None):
            if path == table and format_ is None:
                continue  # without a format, it is the table that is read
            with pytest.raises(InvalidRequest, match=f"is a table of {kind}.*--format {kind.lower()}"):
                opened(spark, path, format_)
    # And the folder alone is read as the table, for which this session lacks the package
    assert table_at(spark, str(table)) == TableFolder(str(table), kind)
    with pytest.raises(InvalidRequest, match=rf"{name}.*\. Start Spark with the package"):
        opened(spark, table)
