"""How a job ends: its summary is the last line, its exit code says what to do."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.errors import NotConfigured
from fanin.spark.jobs.running import FAILED, OK, WRONG, Job, Summary

Run = Callable[[SparkSession, argparse.Namespace], Summary]


def job(run: Run) -> Job:
    return Job("a-job", "does something", lambda parser: parser.add_argument("--n", type=int), run)


def refuse(spark: SparkSession, options: argparse.Namespace) -> Summary:
    raise NotConfigured("the environment names no table")


def read_nothing(spark: SparkSession, options: argparse.Namespace) -> Summary:
    return {"ok": True, "rows": spark.read.parquet("/nowhere").count()}


@pytest.mark.parametrize(
    ("run", "code", "told"),
    [
        (lambda spark, options: {"ok": True, "n": options.n}, OK, {"ok": True, "n": 7}),
        (lambda spark, options: {"ok": False}, WRONG, {"ok": False}),
        (refuse, FAILED, {"ok": False, "error": "not-configured"}),
        (read_nothing, FAILED, {"ok": False, "error": "spark-failed"}),
    ],
    ids=["well", "wrong", "refused", "spark's error"],
)
def test_the_exit_code_and_the_last_line_agree(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], run: Run, code: int, told: Summary
) -> None:
    # Given a job that ends in its way, when it is run
    ended = job(run).main(["--n", "7"])

    # Then the exit code says so, and the last line is its summary
    assert ended == code
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {name: summary[name] for name in told} == told
    assert summary["job"] == "a-job"


def test_the_summary_has_the_root_cause(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # Given a job that fails far below, in a thread of a task
    file = tmp_path / "rows.parquet"
    file.write_text("no Parquet at all")

    def read(spark: SparkSession, options: argparse.Namespace) -> Summary:
        return {"ok": True, "rows": spark.read.parquet(str(file)).count()}

    # When it is run
    assert job(read).main([]) == FAILED

    # Then the summary and the last line on standard error say why, and not where
    told = capsys.readouterr()
    detail = json.loads(told.out.splitlines()[-1])["detail"]
    assert detail.startswith(f"java.lang.RuntimeException: file:{file} is not a Parquet file")
    assert told.err.splitlines()[-1] == f"a-job: {detail}"
