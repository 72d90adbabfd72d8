"""The rejects of few rows, written without a job."""

from __future__ import annotations

from io import BytesIO

import pyarrow.parquet as pq
import pytest

from fanin.spark.runtime import rejects
from fanin.spark.runtime.rejects import Reject, write_few_rejects
from fanin.spark.runtime.unreadable import MARK, UNREADABLE
from tests.unit.spark.runtime.file_systems import FileSystem

FOLDER = "hdfs://n/r"


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were looked into before they were replaced; tests on Spark show what that refuses."""
    folders: list[str] = []

    def check(_session: object, folder: str) -> bool:
        folders.append(folder)
        return True

    monkeypatch.setattr(rejects, "check_rejects_folder", check)
    return folders


def test_few_rejects_replace_those_of_an_earlier_run_and_show_lines_as_they_came(checked: list[str]) -> None:
    # Given the rejects of a run of many rows
    system = FileSystem()
    system.files = {"hdfs://n/r/part-00000-a.snappy.parquet": b"", "hdfs://n/r/_SUCCESS": b""}
    few = [
        Reject("x", "malformed", "why"),
        Reject(f"{{no{MARK}", "malformed", "why"),
        Reject(None, "null", ""),
    ]

    # When a run of few rows writes its own
    counted = write_few_rejects(system.session(), few, FOLDER, write_empty=False)

    # Then they are all there are, and a line that cannot be read is said to be one
    assert counted == {"malformed": 2, "null": 1}
    assert checked == [FOLDER]
    assert set(system.files) == {"hdfs://n/r/part-00000.parquet", "hdfs://n/r/_SUCCESS"}
    written = pq.read_table(BytesIO(system.files["hdfs://n/r/part-00000.parquet"]))
    assert [tuple(row.values()) for row in written.to_pylist()] == [
        ("x", "malformed", "why"),
        ("{no", "malformed", UNREADABLE),
        (None, "null", ""),
    ]


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("write_empty", [True, False])
def test_no_rejects_are_a_dataset_only_if_it_is_asked_for(write_empty: bool) -> None:
    system = FileSystem()

    assert write_few_rejects(system.session(), [], FOLDER, write_empty=write_empty) == {}

    assert ("hdfs://n/r/_SUCCESS" in system.files) == write_empty
    if write_empty:
        assert pq.read_table(BytesIO(system.files["hdfs://n/r/part-00000.parquet"])).num_rows == 0
