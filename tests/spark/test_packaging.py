"""The package as EMR gets it: a zip for spark-submit, on a cluster that knows fanin from nowhere else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pyspark
import pytest

from fanin import Tracker
from fanin.domain.batch import State
from fanin.spark.packing import Package

ROWS = 100
SPARK = Path(pyspark.__file__).parent
BARE = sys._base_executable
"""The Python below the virtual environment: it has no package, and fanin's checkout is not on its path."""
PACKAGES = os.pathsep.join(dict.fromkeys(str(Path(one.__file__).parents[1]) for one in (pyspark, boto3)))
"""The dependencies. As an entry of PYTHONPATH a folder brings its packages, but no editable installation."""


@pytest.fixture
def home() -> Iterator[Path]:
    """Spark, where Java's archive of its classes knows it; its workers leave what they got in there."""
    work = SPARK / "work"
    before = set(work.glob("*"))
    yield SPARK
    for one in set(work.glob("*")) - before:
        shutil.rmtree(one)
    if work.exists() and not before:
        work.rmdir()


@pytest.fixture(params=["local[2]", pytest.param("local-cluster[1,2,1024]", marks=pytest.mark.soak)])
def submitted(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> list[str]:
    """A spark-submit of the package, but for the arguments of the job: to one process, or to a cluster."""
    package = Package.installed()
    entry, code = tmp_path / "job.py", tmp_path / "fanin.zip"
    entry.write_bytes(package.entry)
    code.write_bytes(package.content)
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executorEnv.PYTHONPATH": PACKAGES,
        "spark.executorEnv.AWS_ACCESS_KEY_ID": "test",
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY": "test",
    }
    return [
        *(str(home / "bin" / "spark-submit"), "--master", request.param, "--py-files", str(code)),
        *(word for name, value in conf.items() for word in ("--conf", f"{name}={value}")),
        str(entry),
    ]


@pytest.fixture
def outside(home: Path, elsewhere: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with Spark and the dependencies."""
    ours = ("FANIN_", "AWS_", "JAVA_HOME", "JDK_JAVA_OPTIONS", "PATH", "HOME", "LANG")
    kept = {name: value for name, value in os.environ.items() if name.startswith(ours)}
    return {
        **kept,
        **elsewhere,
        "PYTHONPATH": PACKAGES,
        "PYSPARK_PYTHON": BARE,
        "PYSPARK_DRIVER_PYTHON": BARE,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
    }


def test_there_fanin_is_nowhere_else(outside, tmp_path):
    found = subprocess.run(  # noqa: S603
        [BARE, "-c", "import pyspark, boto3, pyarrow, fanin"],
        env=outside,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'fanin'" in found.stderr


def test_driver_and_executors_run_a_job_from_the_zip(local_environment, outside, submitted, tmp_path):
    # Given a dataset, a queue, and the environment that names the stack
    queue_url = boto3.client("sqs").create_queue(QueueName="packaged")["QueueUrl"]
    (tmp_path / "rows.json").write_text("".join(f'{{"n": {n}}}\n' for n in range(ROWS)))
    arguments = {
        "--input": tmp_path / "rows.json",
        "--format": "json",
        "--queue": queue_url,
        "--staging": tmp_path / "staging",
    }
    # When
    ran = subprocess.run(  # noqa: S603
        [*submitted, "fan-out", *(str(word) for pair in arguments.items() for word in pair)],
        env=outside,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )
    # Then every row is a message and an item
    assert ran.returncode == 0, ran.stderr[-4_000:]
    summary = json.loads(ran.stdout.splitlines()[-1])
    assert (summary["ok"], summary["rows"], summary["sent"]) == (True, ROWS, ROWS)
    batch = Tracker.from_env().status(summary["batch_id"]).batch
    assert (batch.items, batch.state) == (ROWS, State.CLOSED)


def test_a_name_that_is_no_job_fails_the_run(submitted, outside, tmp_path):
    ran = subprocess.run(  # noqa: S603
        [*submitted, "nothing"], env=outside, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode != 0
    assert "say which job: ack, audit, fan-out, report" in ran.stdout
