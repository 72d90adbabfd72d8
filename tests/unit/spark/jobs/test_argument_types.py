"""Text that a function of the library refuses is told by argparse."""

from __future__ import annotations

import argparse

import pytest

from fanin.spark.jobs.dataset_arguments import argument, names_of_totals
from fanin.spark.runtime.rejects import RejectLimit


def test_text_that_is_taken_is_what_the_function_makes_of_it() -> None:
    assert argument(RejectLimit.parse)("2.5%") == RejectLimit.parse("2.5%")
    assert names_of_totals("rows, cents") == ("rows", "cents")


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
