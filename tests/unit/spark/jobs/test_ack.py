"""Arguments of the ack job; what it does is tested on Spark."""

import pytest

from fanin.spark.jobs.ack import JOB

NEEDED = ["--input", "acks", "--work", "work"]


def parsed(*more: str):
    return JOB.parser().parse_args([*NEEDED, *more])


def test_totals_are_names_divided_by_commas():
    assert parsed().totals == ()
    assert parsed("--totals", "rows, cents").totals == ("rows", "cents")


@pytest.mark.parametrize("rate", ["0", "-5", "fast", "inf", "nan"])
def test_a_rate_is_a_number_of_writes_a_second(rate, capsys):
    with pytest.raises(SystemExit):
        parsed("--max-writes-per-second", rate)
    assert f"must be a number of at least 1, not '{rate}'" in capsys.readouterr().err
    assert parsed("--max-writes-per-second", "4e3").max_writes_per_second == 4_000
    assert parsed().max_writes_per_second is None
