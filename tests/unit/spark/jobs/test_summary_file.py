"""The summary that a job prints, and leaves in its folder."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest, ServiceUnavailable, TooManyRejects
from fanin.spark.jobs import running
from fanin.spark.jobs.running import FAILED, INTERRUPTED, OK, WRONG, Job, Summary

Run: TypeAlias = Callable[[SparkSession, argparse.Namespace], Summary]


class Files:
    """A folder of Spark's, on this machine."""

    def __init__(self, spark: object, path: str) -> None:
        self.path = Path(path)

    def at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def read(self, name: str) -> str | None:
        return (self.path / name).read_text() if (self.path / name).exists() else None

    def delete(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)


@pytest.fixture
def folder(sessions: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of a job, which Spark reaches without a session."""
    monkeypatch.setattr(running, "Folder", Files)
    return tmp_path


def job(run: Run, **more: Any) -> Job:
    return Job("a-job", "does", lambda parser: parser.add_argument("--out"), run, output="out", **more)


def refuse(spark: SparkSession, options: argparse.Namespace) -> Summary:
    raise InvalidRequest("there is no such dataset")


def stop(spark: SparkSession, options: argparse.Namespace) -> Summary:
    raise KeyboardInterrupt


def fail(spark: SparkSession, options: argparse.Namespace) -> Summary:
    raise PySparkException("something new")


def too_many(spark: SparkSession, options: argparse.Namespace) -> Summary:
    raise TooManyRejects("5 of 5 rows are rejects", rejects={"null": 5}, rows=5)


@pytest.mark.parametrize(
    ("run", "code", "left"),
    [
        (lambda *_: {"ok": True}, OK, True),
        (lambda *_: {"ok": False}, WRONG, True),
        (too_many, WRONG, True),
        (refuse, FAILED, False),
        (fail, FAILED, False),
        (stop, INTERRUPTED, False),
    ],
    ids=["well", "wrong", "too many rejects", "refused", "spark's error", "interrupted"],
)
def test_only_a_run_that_came_to_its_end_leaves_a_summary_in_its_folder(folder, capsys, *, run, code, left):
    # Given the folder of a run that was fine
    file, seen = folder / "summary.json", []
    file.write_text('{"job": "a-job", "ok": true}')

    def look(spark: SparkSession, options: argparse.Namespace) -> Summary:
        seen.append(file.exists())
        return run(spark, options)

    # When the job is run again
    ended_with = job(look).main(["--out", f"{folder}"])
    # Then nobody takes the old summary for that of this run, while it works or afterwards
    assert (ended_with, seen) == (code, [False])
    assert file.exists() is left
    if left:
        assert file.read_text() == f"{capsys.readouterr().out.splitlines()[-1]}\n"


def test_an_earlier_summary_on_s3_is_deleted_through_spark_before_the_run(sessions, monkeypatch):
    # Given a folder that only Spark reaches
    done: list[str] = []

    class Bucket:
        def __init__(self, spark: object, path: str) -> None:
            self.path = path

        def read(self, name: str) -> str | None:
            return '{"job": "a-job"}'

        def delete(self, name: str) -> None:
            done.append(f"delete {self.path}/{name}")

        def write(self, name: str, text: str) -> None:
            done.append(f"write {self.path}/{name}")

    def run(spark: SparkSession, options: argparse.Namespace) -> Summary:
        done.append("run")
        return {"ok": True}

    monkeypatch.setattr(running, "Folder", Bucket)
    # When the job is run, then Spark deletes the old summary first
    assert job(run).main(["--out", "s3://bucket/data"]) == OK
    name = "s3://bucket/data/summary.json"
    assert done == [f"delete {name}", "run", f"write {name}"]


def test_a_job_that_is_done_ends_well_though_its_summary_cannot_be_written(folder, monkeypatch, capsys):
    # Given a file that others replace all the time
    def refuse_to_write(_files: Files, name: str, _text: str) -> None:
        raise ServiceUnavailable(f"{name} cannot be replaced")

    monkeypatch.setattr(Files, "write", refuse_to_write)
    # When the job is done, then it says so, as without a folder
    assert job(lambda *_: {"ok": True}).main(["--out", f"{folder}"]) == OK
    told = capsys.readouterr()
    assert json.loads(told.out.splitlines()[-1])["ok"]
    assert told.err == f"the summary is not in {folder}: summary.json cannot be replaced\n"


def test_a_file_of_that_name_that_is_no_summary_stays(folder, capsys):
    (folder / "summary.json").write_text('{"mine": true}')
    assert job(lambda *_: {"ok": True}).main(["--out", f"{folder}"]) == FAILED
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["error"], told["detail"].partition(",")[0]) == (
        "invalid-request",
        f"{folder}/summary.json is no summary of a job",
    )
    assert (folder / "summary.json").read_text() == '{"mine": true}'
