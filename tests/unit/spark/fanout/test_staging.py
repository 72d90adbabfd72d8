"""How a staging is counted, and its note read; the staging itself is tested on Spark."""

import json

import pytest
from pyspark.sql.types import StructType

from fanin.app.diagnosis.gathering import SENT
from fanin.errors import InvalidRequest
from fanin.spark.fanout.staging import FEW_FILES, Staging, find_staging
from tests.unit.spark.runtime.file_systems import FileSystem

NOTE = {
    "source": {},
    "attempt": "rows-1",
    "schema": StructType().jsonValue(),
    "counts": [[0, 3]],
    "data": None,
    "left": 0,
    "notes": {},
}


@pytest.mark.parametrize(("rows", "small"), [(0, True), (400_000, True), (400_001, False)])
def test_a_staging_is_small_if_the_notes_of_its_tasks_are_all_read(rows, small):
    assert Staging("/staging", "rows-1", StructType(), {0: rows}).small is small
    assert FEW_FILES == SENT


@pytest.mark.parametrize(
    "files",
    [
        {"staging.json": json.dumps(NOTE)[:40]},
        {"staging.json": "[]"},
        {"staging.json": "{}"},
        {"staging.json": json.dumps({**NOTE, "counts": 3})},
        {"staging.json": ""},
    ],
    ids=["cut off", "no object", "no fields", "another type", "empty"],
)
def test_a_damaged_note_is_named_with_what_to_do(files):
    system = FileSystem()
    system.files = {f"/folder/{name}": text.encode() for name, text in files.items()}

    with pytest.raises(
        InvalidRequest, match=f"/folder/{list(files)[-1]} .*put it back from a copy"
    ) as refused:
        find_staging(system.session(), "/folder")
    # Rows that are taken would be lost with the folder
    assert "delete the folder" not in str(refused.value)
