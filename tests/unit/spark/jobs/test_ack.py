"""Arguments of the ack job; what it does is tested on Spark."""

from unittest.mock import Mock

import pytest

from fanin.spark.ack.few import TASKS
from fanin.spark.inputs.formats import DatasetFormat
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.inputs.opening import Opened
from fanin.spark.jobs.ack import JOB, SMALL, _may_be_few

NEEDED = ["--input", "acks", "--work", "work"]


def parsed(*more: str):
    return JOB.parser().parse_args([*NEEDED, *more])


def test_totals_are_names_divided_by_commas():
    assert parsed().totals == ()
    assert parsed("--totals", "rows, cents").totals == ("rows", "cents")


@pytest.mark.parametrize("rate", ["0", "-5", "fast", "1e9", "nan"])
def test_a_rate_is_a_number_of_writes_a_second(rate, capsys):
    with pytest.raises(SystemExit):
        parsed("--max-writes-per-second", rate)
    assert f"'{rate}' is not a number from 1 to 10,000,000" in capsys.readouterr().err
    assert parsed("--max-writes-per-second", "4e3").max_writes_per_second == 4_000
    assert parsed().max_writes_per_second is None


def opened(*sizes: int) -> Opened:
    return Opened(
        Mock(), DatasetFormat.JSON, [FoundFile(f"file:/{n}", size, 1) for n, size in enumerate(sizes)]
    )


def test_small_files_may_be_few_rows():
    assert _may_be_few(opened(SMALL), parsed())
    assert _may_be_few(opened(*[SMALL // TASKS] * TASKS), parsed("--batch", "7", "--max-rejects", "3"))
    assert _may_be_few(opened(), parsed())


def test_large_or_many_files_and_tables_are_many_rows():
    assert not _may_be_few(opened(SMALL, 1), parsed())
    assert not _may_be_few(opened(*[1] * (TASKS + 1)), parsed())
    assert not _may_be_few(Opened(Mock(), DatasetFormat.TABLE, None), parsed())


@pytest.mark.parametrize(
    "asked",
    [["--totals", "rows"], ["--dry-run"], ["--writers", "0"], ["--max-writes-per-second", "5"]],
    ids=lambda asked: asked[0],
)
def test_what_the_few_know_nothing_of_goes_the_long_way(asked):
    assert not _may_be_few(opened(1), parsed(*asked))
