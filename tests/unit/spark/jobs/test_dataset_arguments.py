"""Arguments of jobs that read datasets."""

import argparse

import pytest

from fanin.spark.inputs.formats import Dialect
from fanin.spark.jobs import ack
from fanin.spark.jobs.dataset_arguments import add_format, add_max_rejects, dialect_of, names_of_totals
from fanin.spark.runtime.rejects import RejectLimit


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_format(made)
    add_max_rejects(made)
    return made


def test_without_arguments_everything_is_by_default(parser: argparse.ArgumentParser) -> None:
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
def test_a_dialect_that_cannot_be_is_a_wrong_argument(
    capsys: pytest.CaptureFixture[str], option: str, text: str, why: str
) -> None:
    with pytest.raises(SystemExit):
        ack.JOB.main(["--input", "acks", "--work", "nowhere", option, text])
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("text", ["rows,rows", "a,b,c,d,e", ""])
def test_text_that_is_refused_is_told_why(capsys: pytest.CaptureFixture[str], text: str) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--totals", type=names_of_totals)
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        names_of_totals(text)

    # argparse shows the reason, and not only that the value is invalid
    with pytest.raises(SystemExit):
        parser.parse_args(["--totals", text])
    assert f"argument --totals: {refused.value}" in " ".join(capsys.readouterr().err.split())
