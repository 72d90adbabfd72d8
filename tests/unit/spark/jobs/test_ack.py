"""Arguments of the ack job; what it does is tested on Spark."""

import pytest

from fanin.spark.ack.strategy import Strategy
from fanin.spark.jobs.ack import JOB

NEEDED = ["--input", "acks", "--work", "work"]


def parsed(*more: str):
    return JOB.parser().parse_args([*NEEDED, *more])


@pytest.mark.parametrize("option", ["--strategy", "--way"])
def test_the_strategy_may_be_given_by_its_former_name_too(option):
    assert [parsed(option, strategy).strategy for strategy in Strategy] == ["parquet", "pages", "sql"]


def test_without_one_the_job_chooses():
    assert parsed().strategy is None


def test_the_former_name_is_not_shown():
    assert "--strategy" in JOB.parser().format_help()
    assert "--way" not in JOB.parser().format_help()


@pytest.mark.parametrize("option", ["--strategy", "--way"])
def test_there_are_no_other_strategies(option, capsys):
    with pytest.raises(SystemExit):
        parsed(option, "fast")
    assert "invalid choice: 'fast'" in capsys.readouterr().err


def test_totals_are_names_divided_by_commas():
    assert parsed().totals == ()
    assert parsed("--totals", "rows, cents").totals == ("rows", "cents")


@pytest.mark.parametrize("text", ["", "Rows", "a,b,c,d,e", "rows,rows"])
def test_totals_that_no_batch_can_have_are_refused(text, capsys):
    with pytest.raises(SystemExit):
        parsed("--totals", text)
    assert "argument --totals" in capsys.readouterr().err
