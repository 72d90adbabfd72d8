"""How a job ends: its summary is the last line, its exit code says what to do."""

import argparse
import json
from collections.abc import Callable

from pyspark.sql import SparkSession

from fanin.spark.jobs.running import FAILED, Job, Summary

Run = Callable[[SparkSession, argparse.Namespace], Summary]


def job(run: Run) -> Job:
    return Job("a-job", "does something", lambda parser: parser.add_argument("--n", type=int), run)


def test_a_path_that_is_not_there_needs_no_traceback(spark, capsys):
    assert (
        job(lambda spark, _: {"ok": True, "rows": spark.read.parquet("/nowhere").count()}).main([]) == FAILED
    )
    said = capsys.readouterr()
    assert json.loads(said.out.splitlines()[-1])["error"] == "invalid-request"
    assert "Traceback" not in said.err


def test_the_summary_has_the_root_cause(spark, capsys, tmp_path):
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
    assert detail.startswith(f"file:{file} cannot be read: java.lang.RuntimeException: ")
    assert "Traceback" not in told.err
    assert told.err.splitlines()[-1] == f"a-job: {detail}"


def test_the_summary_of_a_job_that_ran_to_its_end_is_in_its_folder(spark, capsys, tmp_path):
    # Given a job with a folder, that leaves rows out
    counts = {"ok": True, "rows": 9, "rejects": {"null": 2, "malformed": 1}, "batch_id": 7}
    made = Job("a-job", "does", lambda one: one.add_argument("--out"), lambda *_: counts, output="out")
    # When it is run
    made.main(["--out", f"{tmp_path}/a b"])
    # Then its summary says first what was left out, in its folder as well, and people are told
    told = capsys.readouterr()
    line = told.out.splitlines()[-1]
    assert (tmp_path / "a b" / "summary.json").read_text() == f"{line}\n"
    assert list(json.loads(line)) == ["job", "ok", "batch_id", "rejects", "rows", "seconds"]
    where = f"Look at {tmp_path}/a b/rejects"
    assert told.err.splitlines()[-1] == f"a-job: 3 rows are rejects: 1 malformed, 2 null. {where}"
