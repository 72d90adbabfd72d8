"""The Spark session of the jobs: what they need set, whoever starts them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from fanin.entry.settings import Settings

SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    # Arrow batches of full length make mapInArrow a quarter faster; by default Spark 4 measures each row.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # Spark 4 asks Java eight times for each function of a column, to show its line of Python in errors.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""What every job sets; all but the last may be set while a session runs."""

_ALONE: Final[Mapping[str, str]] = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    # Arrow looks at every value it writes whether there is room, which Spark has seen to before.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Darrow.enable_unsafe_memory_access=true",
    "spark.python.daemon.module": "fanin.spark.daemon",
    "spark.sql.shuffle.partitions": "8",
}
"""For a process that no spark-submit has set up: a laptop, a test."""


def session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session that runs, or one of this process.

    Under spark-submit (EMR) master, memory and the rest come from there; a plain ``python -m`` runs on all
    cores of this machine.

    Args:
        name: of the application, in Spark's pages.
        settings: go before those of this module.
    """
    running = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName(name)
    if running is None and not _submitted():
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # no setting reaches the workers here
        _find_java()
        for key, value in _ALONE.items():
            builder = builder.config(key, value)
    for key, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _quiet(spark)
    return spark


def _submitted() -> bool:
    """Whether spark-submit started this process: it made the JVM before Python."""
    return "PYSPARK_GATEWAY_PORT" in Settings.from_env().environment


def _find_java() -> None:
    """Where there is no Java, take the one that ``make`` puts into the virtual environment."""
    if shutil.which("java") is None and Path(sys.prefix, "bin", "java").is_file():
        os.environ.setdefault("JAVA_HOME", sys.prefix)


def _quiet(spark: SparkSession) -> None:
    """Spark 4 logs some kilobytes of JSON for every SQL error, which it raises as well."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001
    if jvm is not None:
        levels = jvm.org.apache.logging.log4j.Level
        configurator = jvm.org.apache.logging.log4j.core.config.Configurator
        configurator.setLevel("SQLQueryContextLogger", levels.OFF)
