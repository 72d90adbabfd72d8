"""The package as EMR gets it: a zip for spark-submit, on a cluster that knows fanin from nowhere else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from fanin import Tracker
from fanin.domain.batch import State
from fanin.spark.jobs import fan_out
from fanin.spark.packing import Package
from fanin.spark.service import Service
from tests.spark.conftest import SMALL
from tests.spark.consuming import consumers, new_queue, waiting

ROWS = 800
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


@pytest.fixture
def submitted(home: Path, tmp_path: Path) -> Callable[[str], list[str]]:
    """Gives, for a master, a spark-submit of the package, but for the arguments of the job."""
    package = Package.installed()
    entry, code = tmp_path / "job.py", tmp_path / "fanin.zip"
    entry.write_bytes(package.entry)
    code.write_bytes(package.content)
    conf = {
        **SMALL,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executorEnv.PYTHONPATH": PACKAGES,
        "spark.executorEnv.AWS_ACCESS_KEY_ID": "test",
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY": "test",
    }

    def submit(master: str) -> list[str]:
        return [
            *(str(home / "bin" / "spark-submit"), "--master", master, "--py-files", str(code)),
            *(word for name, value in conf.items() for word in ("--conf", f"{name}={value}")),
            str(entry),
        ]

    return submit


@pytest.fixture
def outside(home: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with Spark and the dependencies."""
    ours = ("FANIN_", "AWS_", "JAVA_HOME", "JDK_JAVA_OPTIONS", "PATH", "HOME", "LANG")
    kept = {name: value for name, value in os.environ.items() if name.startswith(ours)}
    return {
        **kept,
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


def words(arguments: dict[str, object]) -> list[str]:
    return [str(word) for pair in arguments.items() for word in pair]


@pytest.mark.soak
def test_driver_and_executors_run_a_job_from_the_zip(local_environment, outside, submitted, tmp_path):
    # Given a dataset, a queue, and the environment that names the stack
    queue_url = new_queue()
    (tmp_path / "rows.json").write_text("".join(f'{{"n": {n}}}\n' for n in range(ROWS)))
    arguments = {
        "--input": tmp_path / "rows.json",
        "--format": "json",
        "--queue": queue_url,
        "--staging": tmp_path / "staging",
    }
    # When
    ran = subprocess.run(  # noqa: S603
        [*submitted("local-cluster[1,2,1024]"), "fan-out", *words(arguments)],
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


@pytest.mark.usefixtures("spark")
def test_a_driver_that_was_killed_in_the_middle_is_run_again(
    service: Service,
    outside: dict[str, str],
    submitted: Callable[[str], list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Given a driver, of the zip, that was killed with its JVM and its tasks when it had sent some messages
    (tmp_path / "rows").mkdir()
    for half in (range(ROWS // 2), range(ROWS // 2, ROWS)):
        pq.write_table(pa.table({"id": half}), tmp_path / "rows" / f"from-{half.start}.parquet")
    queue = new_queue()
    arguments = {"--input": tmp_path / "rows", "--queue": queue, "--staging": tmp_path / "staging"}
    command = [*words(arguments), "--user-key", "killed"]
    with subprocess.Popen(  # noqa: S603
        [*submitted("local[2]"), "fan-out", *command, "--workers", "1"],
        env=outside,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as driver:
        while not (before := waiting(queue)):
            assert driver.poll() is None
            time.sleep(0.1)
        os.killpg(driver.pid, signal.SIGKILL)
    (batch,) = (one for one in service.tracker().iter_batches(State.OPEN) if one.user_key == "killed")
    assert (batch.items, before < ROWS) == (ROWS, True)

    # When another is run in its place, and consumers work
    with consumers(service.tracker(), queue) as handled:
        code = fan_out.JOB.main(command)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert code == 0

    # Then it went on with the same batch: every row is an item, each item is of one row, all are done
    row = service.ledger().status(told["batch_id"]).batch
    assert (told["batch_id"], told["rows"], told["sent"]) == (batch.batch_id, ROWS, ROWS)
    assert (row.state, row.items) == (State.COMPLETE, ROWS)
    assert set(handled.times) == {json.dumps({"id": n}, separators=(",", ":")) for n in range(ROWS)}
    assert {len(bodies) for bodies in handled.bodies.values()} == {1}
    assert len(handled.bodies) == ROWS
    assert sum(handled.times.values()) >= ROWS + before


def test_a_name_that_is_no_job_fails_the_run(submitted, outside, tmp_path):
    ran = subprocess.run(  # noqa: S603
        [*submitted("local[2]"), "nothing"],
        env=outside,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    assert "say which job: ack, audit, fan-out, report" in ran.stdout
