"""Arguments of jobs that read datasets."""

from __future__ import annotations

import argparse

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.inputs.dialect import Dialect
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
    assert dialect_of(options) == Dialect("\t", "latin-1", "", "^", multiline=True)
    assert options.max_rejects == RejectLimit(count=3)


def test_an_encoding_that_is_unknown_is_refused(parser: argparse.ArgumentParser) -> None:
    with pytest.raises(InvalidRequest, match="no encoding 'x'"):
        dialect_of(parser.parse_args(["--encoding", "x"]))


def test_help_can_be_shown(parser: argparse.ArgumentParser) -> None:
    assert "2.5%" in parser.format_help()
