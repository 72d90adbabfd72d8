"""The ack job without a stack: what it cannot read, and who reads it."""

import json

import pyarrow as pa
import pytest

from fanin.spark.ack import parquet_files
from fanin.spark.ack.coalescing import _parquet_files
from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.opening import open_input
from fanin.spark.jobs import running
from fanin.spark.jobs.ack import JOB
from fanin.spark.jobs.running import FAILED
from tests.spark.datasets import parquet


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack that nobody asks."""
    for table in ("BATCHES", "WORDS", "PARTS", "DIRECTORY"):
        monkeypatch.setenv(f"FANIN_{table}_TABLE", table.lower())
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setattr(running, "require_reachable", lambda _: None)


@pytest.mark.usefixtures("spark", "unasked")
@pytest.mark.parametrize(
    ("input_", "more"), [("rejects", []), ("merged", []), ("pages/part-0.parquet", []), ("*", ["--dry-run"])]
)
def test_a_dataset_that_the_job_would_replace_is_refused_and_stays(tmp_path, capsys, *, input_, more):
    # Given what an earlier run left in its work folder
    work = tmp_path / "work"
    for name in ("rejects", "merged", "pages"):
        parquet(work / name / "part-0.parquet", item=["x"])
    before = sorted(work.rglob("*"))
    # When that is to be acknowledged, with the same work folder
    code = JOB.main(["--input", f"{work}/{input_}", "--work", str(work), *more])
    # Then the job says which folder is in the way, and nothing is lost
    assert code == FAILED
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["error"] == "invalid-request"
    assert f"has files in {work}/" in summary["detail"]
    assert sorted(work.rglob("*")) == before


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        ("pq.read_schema", OSError("AccessDenied")),
        ("file_system", OSError("no region of the bucket")),
        ("file_system", pa.ArrowInvalid("no such scheme")),
    ],
)
def test_files_that_only_spark_can_read_are_left_to_spark(spark, tmp_path, capsys, *, refused, error):
    # Given files that Spark has opened
    path = f"{tmp_path}/acks"
    spark.range(9).selectExpr("concat('a:', id) AS item").write.parquet(path)
    opened = open_input(spark, Dataset(path), fields=["item"])
    files = _parquet_files(spark, opened, ["item"])
    assert files is not None
    assert capsys.readouterr().err == ""

    # When pyarrow has no credentials for their bucket, or does not know their file system
    def refuse(*_: object, **__: object) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{parquet_files.__name__}.{refused}", refuse)
        left = _parquet_files(spark, opened, ["item"])
    # Then Spark reads them, and the job says so once
    assert left is None
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("ack: pyarrow cannot read file:")
    assert told.endswith(f"so Spark reads all files, slower: {error}")
