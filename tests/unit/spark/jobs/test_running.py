"""How a job ends without a session of Spark; the rest is tested on Spark."""

import argparse
import json
import os
import socket
from importlib import import_module

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fanin.errors import NotConfigured
from fanin.spark.jobs import JOBS, ack
from fanin.spark.jobs import __main__ as jobs
from fanin.spark.jobs.ack import JOB
from fanin.spark.jobs.options import names_of_totals
from fanin.spark.jobs.running import FAILED, INTERRUPTED, MOST_DETAIL, OK, USAGE, WRONG, Job, Summary


def refuse(spark: SparkSession, options: argparse.Namespace) -> Summary:
    raise NotConfigured("the environment names no table")


def job(run=refuse, **settings: str) -> Job:
    return Job("a-job", "does something", lambda parser: parser.add_argument("--n", type=int), run, settings)


def ended(capsys: pytest.CaptureFixture[str], run, *arguments: str) -> tuple[int, dict, str]:
    code = job(run).main(arguments)
    told = capsys.readouterr()
    return code, json.loads(told.out.splitlines()[-1]), told.err


def test_a_job_has_a_session_of_its_name_with_its_settings(sessions):
    job(lambda spark, options: {"ok": True}, key="value").main([])
    assert sessions == [("fanin a-job", {"key": "value"})]


@pytest.mark.parametrize(("ok", "code"), [(True, OK), (False, WRONG)])
def test_the_summary_decides_the_exit_code(sessions, capsys, ok, code):
    ended_with, summary, err = ended(capsys, lambda spark, options: {"ok": ok, "n": options.n}, "--n", "7")
    assert ended_with == code
    assert summary.pop("seconds") >= 0
    assert summary == {"job": "a-job", "ok": ok, "n": 7}
    assert err == ""


def test_a_reader_who_has_gone_changes_no_exit_code(sessions, monkeypatch, tmp_path):
    # Given a job whose summary nobody reads, as in a pipe to head
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        monkeypatch.setattr("sys.stdout", gone)
        monkeypatch.setattr("sys.stderr", gone)
        # Then it ends as it would have otherwise
        assert job(lambda spark, options: {"ok": True, "warning": "no rows"}).main([]) == OK
        assert job(lambda spark, options: {"ok": False}).main([]) == WRONG


def test_a_refusal_is_in_the_summary_and_on_standard_error(sessions, capsys):
    code, summary, err = ended(capsys, refuse)
    assert (code, summary["error"], summary["detail"]) == (
        FAILED,
        "not-configured",
        "the environment names no table",
    )
    assert err.splitlines()[-1] == "a-job: the environment names no table"


def test_an_error_of_spark_is_cut_in_the_summary(sessions, capsys):
    def fail(spark, options):
        raise PySparkException("x" * 3 * MOST_DETAIL)

    code, summary, err = ended(capsys, fail)
    assert (code, summary["error"], summary["detail"]) == (FAILED, "spark-failed", "x" * MOST_DETAIL)
    assert "x" * 3 * MOST_DETAIL in err


def test_an_error_of_fanin_in_a_task_ends_the_job_as_itself(sessions, capsys):
    # Given a task that ended with an error of fanin, as Spark says it
    def fail(spark, options):
        frame = '  File "/app/sender.py", line 202, in send'
        told = f"Traceback (most recent call last):\n{frame}\nfanin.errors.NotConfigured: no such queue"
        raise PySparkException(f"An exception was thrown from the Python worker.\n{told}\n")

    # When the job ends, then it says the same as if it had been raised here, without a traceback
    code, summary, err = ended(capsys, fail)
    assert (code, summary["error"], summary["detail"]) == (FAILED, "not-configured", "no such queue")
    assert err == "a-job: no such queue\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotConfigured("no table"), FAILED),
        (PySparkException("the disk is full"), FAILED),
        (ValueError("a mistake"), FAILED),
        (KeyboardInterrupt(), INTERRUPTED),
    ],
)
def test_what_a_job_has_so_far_is_in_the_summary_of_one_that_does_not_end(sessions, capsys, error, code):
    # Given a job that opens a batch, and then is stopped or fails
    def stopped(spark, options):
        options.so_far["batch_id"] = 7
        raise error

    # When it ends, then its summary has the batch
    ended_with, summary, _ = ended(capsys, stopped)
    assert (ended_with, summary["ok"], summary["batch_id"]) == (code, False, 7)
    # And that of the next run has not
    assert "batch_id" not in ended(capsys, refuse)[1]


def test_a_mistake_in_a_job_is_not_hidden_and_has_a_summary(sessions, capsys):
    # Given a job with a mistake in it
    def fail(spark, options):
        return {"ok": 1 / 0}

    # When it is run, then it could not run to its end, and both people and programs learn why
    assert job(fail).main([]) == FAILED
    told = capsys.readouterr()
    summary = json.loads(told.out.splitlines()[-1])
    assert (summary["ok"], summary["error"]) == (False, "unexpected")
    assert summary["detail"] == "ZeroDivisionError: division by zero"
    assert "Traceback" in told.err


@pytest.mark.parametrize(
    ("found", "warned"),
    [
        ({"rows": 0}, True),
        ({"rows": 0, "rejects": {}}, True),
        ({"rows": 0, "rejects": {"null": 3}}, False),
        ({"rows": 3, "rejects": {}}, False),
        ({}, False),
    ],
)
def test_a_dataset_without_rows_is_well_but_people_are_warned(sessions, capsys, found, warned):
    # Given a job that reads a dataset, when it ends
    one = Job(
        "a-job", "does", lambda parser: parser.add_argument("--input"), lambda *_: {"ok": True, **found}
    )
    assert one.main(["--input", "acks/"]) == OK
    # Then only of no rows at all the summary and standard error say which dataset has none
    told = capsys.readouterr()
    summary = json.loads(told.out)
    assert ("warning" in summary) is warned
    if warned:
        assert summary["warning"].startswith("acks/ has no rows; look whether the path is right")
        assert list(summary)[:3] == ["job", "ok", "warning"]
        assert told.err.splitlines() == [f"a-job: warning: {summary['warning']}"]
    # And of a job that has read none, nothing is said
    assert one.main([]) == OK
    assert "warning" not in json.loads(capsys.readouterr().out)


ONE_SOURCE = "pass --scan, or both --batches-export and --words-export"


@pytest.mark.parametrize(
    ("module", "words", "why"),
    [
        ("audit", "", ONE_SOURCE),
        ("audit", "--batches-export a", ONE_SOURCE),
        ("audit", "--words-export a", ONE_SOURCE),
        ("audit", "--scan --words-export a", ONE_SOURCE),
        ("audit", "--scan --segments 0", "segments must be a whole number from 1 to 1,000,000, not '0'"),
        ("audit", "--scan --output=", "--output must be a path, such as s3://bucket/data or a Path, not ''"),
    ],
)
def test_wrong_arguments_of_a_job_start_nothing(sessions, capsys, module, words, why):
    # Given arguments that are unknown, too few, or contradict each other, when a job is run
    with pytest.raises(SystemExit) as ended:
        import_module(f"fanin.spark.jobs.{module}").JOB.main(["--output", "nowhere", *words.split()])
    # Then it says what to pass, and has not even started Spark
    assert ended.value.code == USAGE
    assert why in capsys.readouterr().err
    assert not sessions


ANY_JOB = pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("ack", ["--input", "nowhere", "--work", "nowhere"]),
        ("audit", ["--scan", "--output", "nowhere"]),
        ("fan_out", ["--input", "nowhere", "--queue", "https://sqs/q", "--staging", "nowhere"]),
    ],
)


@ANY_JOB
def test_a_job_that_cannot_reach_what_it_needs_ends_before_it_begins(
    sessions, monkeypatch, capsys, module, arguments
):
    # Given a network from which nothing of AWS answers
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"http://127.0.0.1:{server.getsockname()[1]}"
    for table in ("BATCHES", "WORDS", "PARTS", "DIRECTORY"):
        monkeypatch.setenv(f"FANIN_{table}_TABLE", "t")
    monkeypatch.setenv("AWS_ENDPOINT_URL", closed)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("FANIN_BATCHES_TABLE", "b")
    # When a job is started
    code = import_module(f"fanin.spark.jobs.{module}").JOB.main(arguments)
    # Then it says so, and has not even started Spark
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (code, summary["ok"], summary["error"]) == (FAILED, False, "unreachable")
    assert closed in summary["detail"]
    assert not sessions


def test_an_audit_of_exports_needs_nothing_but_the_exports():
    audit = import_module("fanin.spark.jobs.audit").JOB
    options = audit.parser().parse_args(["--batches-export", "a", "--words-export", "b", "--output", "c"])
    assert audit.needs(options) == {}


@ANY_JOB
def test_a_table_that_is_not_named_is_told_before_spark_starts(
    sessions, monkeypatch, capsys, module, arguments
):
    # Given an environment with a region and perhaps an API, but without tables
    monkeypatch.setenv("FANIN_API_URL", "https://api.test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.delenv("FANIN_BATCHES_TABLE", raising=False)
    # When a job is started
    code = import_module(f"fanin.spark.jobs.{module}").JOB.main(arguments)
    # Then it names the variable, and has not even started Spark
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (code, summary["error"]) == (FAILED, "not-configured")
    assert "FANIN_BATCHES_TABLE" in summary["detail"]
    assert not sessions


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


@pytest.mark.parametrize("arguments", [[], ["compact"]])
def test_an_unknown_job_is_refused_with_the_names_of_all(arguments, capsys):
    assert jobs.main(arguments) == USAGE
    assert "ack, audit, fan-out;" in capsys.readouterr().err


@pytest.mark.parametrize("name", JOBS)
def test_every_job_has_its_help(name, capsys):
    with pytest.raises(SystemExit) as ended:
        jobs.main([name, "--help"])
    assert ended.value.code == OK
    assert f"fanin.spark.jobs.{name.replace('-', '_')}" in capsys.readouterr().out


def test_the_other_arguments_are_the_job_s(monkeypatch):
    given = []
    monkeypatch.setattr(
        jobs.job("audit").__class__, "main", lambda self, arguments: given.append(arguments) or 3
    )
    assert jobs.main(["audit", "--scan"]) == 3
    assert given == [["--scan"]]
