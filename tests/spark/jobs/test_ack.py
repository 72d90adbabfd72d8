"""The ack job without a stack: what it cannot read."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.spark.jobs.ack import JOB
from fanin.spark.jobs.running import FAILED
from fanin.spark.runtime import reach


@pytest.mark.parametrize("name", ["acks", "acks.csv", "acks.jsonl", "acks/*"])
def test_a_path_that_does_not_exist_is_not_an_empty_dataset(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    # Given a stack that nobody asks, and a path where there is nothing: a folder, a file of each format, or a
    # pattern
    for table in ("BATCHES", "WORDS", "PARTS"):
        monkeypatch.setenv(f"FANIN_{table}_TABLE", table.lower())
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setattr(reach, "require", lambda _: None)
    path = f"{tmp_path}/{name}"

    # When what is there should be acknowledged
    code = JOB.main(["--input", path, "--work", f"{tmp_path}/work"])

    # Then the job says so, and has done nothing
    assert code == FAILED
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["error"] == "invalid-request"
    assert summary["detail"].startswith(f"{path} cannot be read: ")
    assert list(tmp_path.iterdir()) == []
