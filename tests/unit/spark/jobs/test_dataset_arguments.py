"""Arguments of jobs that read datasets, and any job by its name."""

import argparse

import pytest

from fanin.spark.inputs.formats import Dialect
from fanin.spark.jobs import JobName, ack
from fanin.spark.jobs import __main__ as jobs
from fanin.spark.jobs.ack import JOB
from fanin.spark.jobs.dataset_arguments import add_format, add_max_rejects, dialect_of, names_of_totals
from fanin.spark.jobs.running import OK, USAGE
from fanin.spark.runtime.rejects import RejectLimit


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_format(made)
    add_max_rejects(made)
    return made


def test_without_arguments_everything_is_by_default(parser):
    options = parser.parse_args([])
    assert (options.format, dialect_of(options), options.max_rejects) == (None, Dialect(), RejectLimit())


@pytest.mark.parametrize(
    ("option", "text", "why"),
    [
        ("--encoding", "x", "there is no encoding 'x'"),
        ("--delimiter", "", "the delimiter is empty"),
        ("--quote", "ab", "the quote must be a single character, and is 'ab'"),
        ("--escape", "ab", "the escape must be a single character, and is 'ab'"),
    ],
)
def test_a_dialect_that_cannot_be_is_a_wrong_argument(capsys, option, text, why):
    with pytest.raises(SystemExit):
        ack.JOB.main(["--input", "acks", "--work", "nowhere", option, text])
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("text", ["rows,rows", "a,b,c,d,e", ""])
def test_text_that_is_refused_is_told_why(capsys, text):
    parser = argparse.ArgumentParser()
    parser.add_argument("--totals", type=names_of_totals)
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        names_of_totals(text)

    # argparse shows the reason, and not only that the value is invalid
    with pytest.raises(SystemExit):
        parser.parse_args(["--totals", text])
    assert f"argument --totals: {refused.value}" in " ".join(capsys.readouterr().err.split())


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


@pytest.mark.parametrize("arguments", [[], ["compact"]])
def test_an_unknown_job_is_refused_with_the_names_of_all(arguments, capsys):
    assert jobs.main(arguments) == USAGE
    assert "ack, audit, fan-out;" in capsys.readouterr().err


@pytest.mark.parametrize("name", JobName)
def test_every_job_has_its_help(name, capsys):
    with pytest.raises(SystemExit) as ended:
        jobs.main([name, "--help"])
    assert ended.value.code == OK
    assert f"fanin.spark.jobs.{name.replace('-', '_')}" in capsys.readouterr().out


def test_the_other_arguments_are_the_job_s(monkeypatch):
    given = []
    monkeypatch.setattr(
        jobs.job(JobName.AUDIT).__class__, "main", lambda self, arguments: given.append(arguments) or 3
    )
    assert jobs.main(["audit", "--scan"]) == 3
    assert given == [["--scan"]]
