"""Ctrl-C ends a job with a summary that says so, and nothing else."""

import json
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fanin.spark.jobs.running import INTERRUPTED, Job, Summary


def endless(spark: SparkSession, options: Namespace) -> Summary:
    """Write rows that never come, after the file ``begun``."""

    def wait(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for record in records:
            (options.folder / "begun").touch()
            time.sleep(600)
            yield record

    rows = spark.range(1)
    rows.mapInArrow(wait, rows.schema).write.parquet(str(options.folder / "rows"))
    return {"ok": True}


JOB = Job("endless", "never ends", lambda one: one.add_argument("--folder", type=Path), endless)


def test_a_job_says_that_it_was_interrupted(tmp_path):
    # Given a job in the middle of something
    command = [sys.executable, "-m", "tests.spark.jobs.test_interrupting", "--folder", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        until = time.monotonic() + 120
        while not (tmp_path / "begun").exists():
            if running.poll() is not None or time.monotonic() > until:
                running.kill()
                pytest.fail(f"it did not begin: {running.communicate()[1]}")
            time.sleep(0.1)
        # When somebody presses Ctrl-C
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    # Then it ends at once, and neither Java nor Python shows where it was
    summary = json.loads(out.splitlines()[-1])
    assert (running.returncode, summary["error"]) == (INTERRUPTED, "interrupted")
    told = err.splitlines()
    assert told[-1] == f"endless: {summary['detail']}"
    assert not [line for line in told if "ERROR" in line or "Traceback" in line or line.startswith("\t")]


if __name__ == "__main__":
    sys.exit(JOB.main(sys.argv[1:]))
