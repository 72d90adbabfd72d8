"""Arguments of jobs that read datasets."""

from __future__ import annotations

import argparse

import pytest

from fanin.spark.inputs.formats import Dialect
from fanin.spark.jobs.dataset_arguments import add_format, add_max_rejects, dialect_of
from fanin.spark.runtime.rejects import ANY, RejectLimit


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_format(made)
    add_max_rejects(made)
    return made


def test_without_arguments_everything_is_by_default(parser: argparse.ArgumentParser) -> None:
    options = parser.parse_args([])
    assert (options.format, dialect_of(options), options.max_rejects) == (None, Dialect(), ANY)


def test_a_dialect_has_every_argument(parser: argparse.ArgumentParser) -> None:
    words = ["--delimiter", r"\t", "--encoding", "latin-1", "--quote", "", "--escape", "^", "--multiline"]
    options = parser.parse_args([*words, "--max-rejects", "3"])
    assert dialect_of(options) == Dialect(
        delimiter="\t", encoding="latin-1", quote="", escape="^", multiline=True
    )
    assert options.max_rejects == RejectLimit(count=3)


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
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str], option: str, text: str, why: str
) -> None:
    with pytest.raises(SystemExit):
        parser.parse_args([option, text])
    assert f"argument {option}: {why}" in capsys.readouterr().err


def test_help_can_be_shown(parser: argparse.ArgumentParser) -> None:
    assert "2.5%" in parser.format_help()
