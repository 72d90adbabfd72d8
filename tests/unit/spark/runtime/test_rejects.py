"""The rejects of few rows, written without a job; and how many there may be."""

from io import BytesIO

import pyarrow.parquet as pq
import pytest

from fanin.errors import InvalidRequest
from fanin.spark.runtime import rejects
from fanin.spark.runtime.rejects import MOST_SHOWN, Reject, RejectLimit, commonest, write_few_rejects
from fanin.spark.runtime.unreadable import MARK, UNREADABLE, WRONG_COLUMNS
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


def test_few_rejects_replace_those_of_an_earlier_run_and_show_lines_as_they_came(checked):
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
def test_no_rejects_are_a_dataset_only_if_it_is_asked_for(write_empty):
    system = FileSystem()

    assert write_few_rejects(system.session(), [], FOLDER, write_empty=write_empty) == {}

    assert ("hdfs://n/r/_SUCCESS" in system.files) == write_empty
    if write_empty:
        assert pq.read_table(BytesIO(system.files["hdfs://n/r/part-00000.parquet"])).num_rows == 0


@pytest.mark.parametrize(
    ("text", "limit"),
    [("0", RejectLimit(count=0)), ("100", RejectLimit(count=100)), ("2.5%", RejectLimit(share=0.025))],
)
def test_a_limit_is_a_number_of_rows_or_a_share_of_them(text, limit):
    assert RejectLimit.of(text) == limit


@pytest.mark.parametrize("text", ["", "%", "-1", "many", "101%", "-1%", "nan%", "1.5"])
def test_anything_else_is_refused(text):
    with pytest.raises(InvalidRequest, match="neither a number of rows nor a share"):
        RejectLimit.of(text)


@pytest.mark.parametrize(
    ("limit", "rejected", "enough"),
    [
        (RejectLimit(), {"null": 99}, True),
        (RejectLimit(), {"null": 60, "malformed": 40}, False),
        (RejectLimit(count=3), {"null": 3}, True),
        (RejectLimit(count=3), {"null": 2, "gone": 2}, False),
        (RejectLimit(count=0), {}, True),
        (RejectLimit(count=0), {"duplicate": 90}, True),
        (RejectLimit(share=0.05), {"null": 5}, True),
        (RejectLimit(share=0.05), {"null": 6}, False),
        (RejectLimit(count=1_000), {"null": 100}, True),
    ],
)
def test_repeats_do_not_count_and_all_rows_are_too_many(limit, rejected, enough):
    # Given a hundred rows, when some are rejects, then the job may go on or not
    assert limit.allows(rejected, 100) is enough


def test_as_many_rejects_as_the_share_says_are_enough():
    # 0.29 * 100 is less than 29 in floating-point numbers
    for percent in range(101):
        limit = RejectLimit.of(f"{percent}%")
        assert limit.allows({"null": percent}, 100)
        assert not limit.allows({"null": percent + 1}, 100)


def test_a_dataset_without_rows_has_no_rejects():
    assert RejectLimit().allows({}, 0)


@pytest.mark.parametrize(
    ("detail", "value", "told"),
    [
        ("the body is null", None, "The commonest (3): malformed, the body is null; for example null."),
        (None, "x", "The commonest (3): malformed; for example 'x'."),
        (UNREADABLE, "K\ufffdse", "Name the encoding of the files (--encoding, for example windows-1252)."),
        (UNREADABLE, "a,b,c", "look whether its delimiter and quote are right (--delimiter, --quote)."),
        (WRONG_COLUMNS, "a,b,c", "look whether its delimiter and quote are right (--delimiter, --quote)."),
        ("y" * 999, "x" * 999, f"{'y' * MOST_SHOWN}…; for example '{'x' * MOST_SHOWN}…'."),
    ],
)
def test_the_commonest_reject_says_what_to_look_at(detail, value, told):
    assert commonest("malformed", detail, 3, value).endswith(told)
