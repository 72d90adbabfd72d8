"""The Spark session of the jobs: the settings that they need however they are started, and a quiet Ctrl-C."""

import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from pyspark.sql import SparkSession

from fanin.domain.limits import shown
from fanin.entry.settings import Settings
from fanin.errors import InvalidRequest

SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    # Spark 4 otherwise reads text in seven encodings only.
    "spark.sql.legacy.javaCharsets": "true",
    # By default Spark 4 measures every row for Arrow; full batches make mapInArrow a quarter faster.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # Spark 4 calls Java eight times for each function of a column, to show lines of Python in errors.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""Settings of every job; all but the last can be changed while a session runs. Who calls the functions of the
library in a session of his own need not have them: tasks then get smaller pages."""

_ALONE: Final[Mapping[str, str]] = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    # A heap that grows from a sixty-fourth of the memory has the collector stop all tasks so often that
    # handing rows to Python takes a sixth longer. Arrow need not check bounds, of which Spark has made sure.
    "spark.driver.defaultJavaOptions": "-XX:InitialRAMPercentage=25 -Darrow.enable_unsafe_memory_access=true",
    # A user's own replace this one, and follow the others: Java refuses to start with two collectors.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "8",
    # To open a file costs as much as to read this many bytes, by default 4 MiB, as on S3: of a file on this
    # machine that is a thousand times too much, and of small files makes a task of every thirty.
    "spark.sql.files.openCostInBytes": "65536",
    # By default each of up to 10,000 files has a task that looks it up: longer than it takes to read it.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
}
"""Settings for a process that was not started by spark-submit, for example on a laptop or in a test."""


_LOUD: Final = (
    # Spark 4 logs kilobytes of JSON for every SQL error, although it raises the error too.
    "SQLQueryContextLogger",
    # A path that does not exist has no metadata of a stream either, which is a page of stack frames.
    "org.apache.spark.sql.execution.streaming.FileStreamSink",
    "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink",
)
_TOLD_TWICE: Final = (
    "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
    "org.apache.spark.util.Utils",
)
"""Loggers that print pages of stack frames for what is raised too, if no task is tried again."""


def session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Get the running session as it is, or create one in this process with the settings of the jobs.

    Under spark-submit (EMR), master, memory and the rest come from there; a plain ``python -m`` runs on all
    cores of this machine.

    Args:
        name: of the application, in Spark's UI.
        settings: Spark properties of a new session; they override those of this module.
    """
    if (running := SparkSession.getActiveSession()) is not None:
        return running
    # spark-submit starts the JVM before Python.
    alone = "PYSPARK_GATEWAY_PORT" not in Settings.from_env().environment
    if alone:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers here do not see settings
        _find_java()
    wanted: dict[str, Any] = {**(_ALONE if alone else {}), **SETTINGS, **(settings or {})}
    spark = SparkSession.builder.appName(name).config(map=wanted).getOrCreate()
    for logger in (*_LOUD, *(_TOLD_TWICE if alone else ())):
        turn_off(spark, logger)
    return spark


class Located:
    """Rows that are named by where they are, and so have no session."""


def session_of(rows: Any) -> SparkSession:
    """The session of a DataFrame; for a ``Dataset``, or failed rows, the running one."""
    if isinstance(rows, Located):
        return session("fanin")
    found = getattr(rows, "sparkSession", None)
    if found is None:
        raise InvalidRequest(
            "rows must be a DataFrame, or a Dataset, which names where they are and of what format, such as"
            f' Dataset("s3://lake/orders", "csv"), not {shown(rows)}'
        )
    return found  # type: ignore[no-any-return]  # also one of Spark Connect


_LOCK: Final = threading.Lock()
_HELD: Final[dict[tuple[int, str], tuple[str | None, list[str]]]] = {}
"""Session and setting → what it was before, and what the blocks that hold it want; the last counts."""


@contextmanager
def holding(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change those settings of a session that can change while it runs, for the time of a block.

    Threads of one session may be in such a block at the same time.
    """
    names = [name for name in settings if spark.conf.isModifiable(name)]
    with _LOCK:
        for name in names:
            _, wanted = _HELD.setdefault((id(spark), name), (spark.conf.get(name, None), []))
            wanted.append(settings[name])
            spark.conf.set(name, settings[name])
    try:
        yield
    finally:
        with _LOCK:
            for name in names:
                before, wanted = _HELD[id(spark), name]
                wanted.remove(settings[name])
                value = wanted[-1] if wanted else before
                if not wanted:
                    del _HELD[id(spark), name]
                if value is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, value)


@contextmanager
def quiet_session(name: str, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Get a session for a process that ends after the block; Ctrl-C ends it without tracebacks.

    A session that was running before has the settings of the jobs within the block, and its own after it.

    Ctrl-C raises ``KeyboardInterrupt``, which cancels what Spark is doing; while Java starts, it waits. All
    logging is off from then on, and the next Ctrl-C ends the process at once.

    Args:
        name: of the application, in Spark's UI.
        settings: Spark properties; they override those of this module.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C.

    Example:
        >>> with quiet_session("nightly acks") as spark:  # doctest: +SKIP
        ...     acknowledge(spark.read.parquet("s3://lake/acks"), Service.from_env(), work="s3://lake/work")
    """
    running = SparkSession.getActiveSession()
    with held_interrupt():
        spark = session(name, settings)
    with quiet_interrupt(spark), holding(spark, {**SETTINGS, **(settings or {})} if running else {}):
        yield spark


def _find_java() -> None:
    """Without a Java on the path, use the one that ``make`` puts into the virtual environment."""
    if shutil.which("java") is None and Path(sys.prefix, "bin", "java").is_file():
        os.environ.setdefault("JAVA_HOME", sys.prefix)


@contextmanager
def held_interrupt() -> Iterator[None]:
    """Let Ctrl-C raise ``KeyboardInterrupt`` only at the end of the block, which starts Java.

    PySpark, interrupted while it waits for Java, leaves a Java behind that never ends.
    """
    held: list[int] = []
    with _on_interrupt(lambda signum, _frame: held.append(signum)):
        yield
    if held:
        raise KeyboardInterrupt


@contextmanager
def _on_interrupt(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Handle Ctrl-C in the block, unless it is in another thread than the main one.

    Afterwards it is as before, except when the next Ctrl-C is to end the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
            signal.signal(signal.SIGINT, before)


def quiet_interrupt(spark: SparkSession) -> AbstractContextManager[None]:
    """Let Ctrl-C raise ``KeyboardInterrupt`` in the block, and turn off all logging first.

    Logging stays off, and the next Ctrl-C ends the process at once, so only a process that is about to end
    may use this.
    """

    def interrupt(signum: int, frame: FrameType | None) -> None:
        # Spark's own handler calls Java while another call waits for its answer, which Python refuses. A
        # thread has a connection of its own. The interrupt then makes py4j close the connection that waits,
        # and Java cancels its job.
        signal.signal(signum, signal.SIG_DFL)
        logging.disable()
        silencing = threading.Thread(target=turn_off, args=(spark, ""), daemon=True)
        silencing.start()
        silencing.join(2.0)
        signal.default_int_handler(signum, frame)

    return _on_interrupt(interrupt)


def turn_off(spark: SparkSession, logger: str) -> None:
    """Turn off one of Java's loggers and those below it; the empty name stands for all."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001
    if jvm is not None:
        levels = jvm.org.apache.logging.log4j.Level
        configurator = jvm.org.apache.logging.log4j.core.config.Configurator
        configurator.setAllLevels(logger, levels.OFF)


def classic(spark: SparkSession, what: str) -> SparkSession:
    """Refuse a session of Spark Connect.

    Its client has no Spark context, which says how many tasks a cluster runs, counts what they do, and has
    the settings of Hadoop. ``outcomes`` needs none of these, and takes any session.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise InvalidRequest(
            f"{what} was called with a session of Spark Connect, whose client has no Spark context. Run"
            " it where the driver is: as a job of the cluster (spark-submit, EMR, Glue, a notebook on a"
            " dedicated cluster of Databricks), or with a session that was made without .remote(...)"
        )
    return spark


UNBOUNDED: Final = 4_096
"""Stands for the tasks of a cluster that may grow without bounds; the data then decides."""


def most_tasks(spark: SparkSession) -> int:
    """How many tasks can run at the same time when all executors are there that Spark may ask for.

    A cluster with dynamic allocation starts with few executors or none, and asks for more while tasks wait.
    ``defaultParallelism`` counts only those that are there: two cores if there are none.
    """
    context = spark.sparkContext
    conf = context.getConf()
    now = context.defaultParallelism
    if (conf.get("spark.dynamicAllocation.enabled") or "false").lower() != "true":
        return now
    executors = conf.get("spark.dynamicAllocation.maxExecutors") or "infinity"
    if not executors.isdigit():
        return max(now, UNBOUNDED)
    cores = int(conf.get("spark.executor.cores") or 1) // int(conf.get("spark.task.cpus") or 1)
    return max(now, min(UNBOUNDED, int(executors) * max(1, cores)))


def one_task_for_each_file(spark: SparkSession) -> AbstractContextManager[None]:
    """Have tasks that are planned in the block read no more than one file each, or a part of a large one.

    Spark otherwise joins files until all cores have the same, which makes as many tasks as there are cores.
    """
    # With the cost of opening it, any file is as large as a task may be.
    most = spark.conf.get("spark.sql.files.maxPartitionBytes") or ""
    return holding(spark, {"spark.sql.files.openCostInBytes": most})
