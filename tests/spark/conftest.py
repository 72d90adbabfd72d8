"""One Spark session for all the tests."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pyspark
import pytest
from pyspark.sql import SparkSession

from fanin.spark.emr import Script
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import session
from tests.spark import classes, java_calls
from tests.spark.setting import setting

CORES = 2
SPARK = Path(pyspark.__file__).parent
BARE = sys._base_executable
"""The Python below the virtual environment: it has no package, and fanin's checkout is not on its path."""
PACKAGES = os.pathsep.join(dict.fromkeys(str(Path(one.__file__).parents[1]) for one in (pyspark, boto3)))
"""The dependencies. As an entry of PYTHONPATH a folder brings its packages, but no editable installation."""
SMALL = {
    # To generate and compile code for each plan takes longer than to run it on some rows,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # and so does planning again after every step, and looking at the plan after every rule.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "1",
    # So does looking for what follows from a filter, of which there is nothing to skip.
    "spark.sql.constraintPropagation.enabled": "false",
    # A second task for some rows takes as long as the first; what matters is shuffled in two parts.
    "spark.sql.leafNodeDefaultParallelism": "1",
}
"""For data of the size that most tests have; all of it may be set while a session runs."""


@pytest.fixture(scope="session", autouse=True)
def _java() -> Iterator[None]:
    """JVMs that start in half the time, and find their classes at once."""
    os.environ.update(classes.environment())
    with pytest.MonkeyPatch.context() as patch:
        java_calls.remember(patch)
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores, the only one of this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")  # as its JVM has them, so do all processes that it starts
        made = session(
            "tests",
            {
                "spark.master": f"local[{CORES},4]",  # a task is tried four times
                "spark.sql.shuffle.partitions": str(CORES),
                **SMALL,
                "spark.cleaner.referenceTracking": "false",  # what is not used any more goes with the session
                "spark.broadcast.compress": "false",
                "spark.shuffle.compress": "false",
                "spark.metrics.staticSources.enabled": "false",
                "spark.hadoop.fs.file.impl": "Files",
                "spark.python.daemon.module": "tests.spark.daemon",
                # Over TCP every second task waits 45 ms for an acknowledgement that the kernel delays.
                "spark.python.unix.domain.socket.enabled": "true",
                "spark.connect.grpc.binding.port": "0",  # any that is free
            },
        )
    with pytest.MonkeyPatch.context() as patch:
        java_calls.say_no_lines(patch, made.sparkContext)
        yield made
    made.stop()


@pytest.fixture(scope="module", params=["by default", pytest.param("the other", marks=pytest.mark.soak)])
def any_ansi(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """SQL fails on what is malformed, as by default since Spark 4, or makes a null of it, as before."""
    name = "spark.sql.ansi.enabled"
    default = spark.conf.get(name)
    other = "false" if default == "true" else "true"
    with setting(spark, name, other if request.param == "the other" else default):
        yield


@pytest.fixture(scope="module")
def as_deployed(spark: SparkSession) -> Iterator[None]:
    """Plans are made and run as they are where nobody sets anything: adaptive, and compiled."""
    for name in SMALL:
        spark.conf.unset(name)
    yield
    for name, value in SMALL.items():
        spark.conf.set(name, value)


@pytest.fixture
def service(local_environment: None) -> Service:
    """The stack, for driver and tasks."""
    return Service.from_env()


@pytest.fixture
def small_pages(spark: SparkSession) -> Iterator[None]:
    """Tasks in Python are given fifty rows at a time."""
    with setting(spark, "spark.sql.execution.arrow.maxRecordsPerBatch", "50"):
        yield


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
def submitted(home: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """Gives, for a master, a spark-submit of the package or of a script, but for the arguments of the job."""
    package = Script.installed()
    entry, code = tmp_path / "job.py", tmp_path / "fanin.zip"
    entry.write_bytes(package.entry)
    code.write_bytes(package.files or b"")
    conf = {
        **SMALL,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.executorEnv.PYTHONPATH": PACKAGES,
        "spark.executorEnv.AWS_ACCESS_KEY_ID": "test",
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY": "test",
    }

    def submit(master: str, script: Script | None = None) -> list[str]:
        start, zips = entry, [code]
        if script:
            start, files = tmp_path / "submitted" / f"{script.name}.py", tmp_path / "submitted" / "files.zip"
            start.parent.mkdir()
            start.write_bytes(script.entry)
            files.write_bytes(script.files or b"")
            zips += [files]
        return [
            *(str(home / "bin" / "spark-submit"), "--master", master, "--py-files", ",".join(map(str, zips))),
            *(word for name, value in conf.items() for word in ("--conf", f"{name}={value}")),
            str(start),
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
