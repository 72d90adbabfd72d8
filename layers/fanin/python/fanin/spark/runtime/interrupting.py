"""Ctrl-C ends a job, without the pages of tracebacks that Java and py4j log for it."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Final

from pyspark.sql import SparkSession

_TIMEOUT: Final = 2.0
"""Seconds to wait until Java's loggers are off."""


@contextmanager
def held_interrupt() -> Iterator[None]:
    """Let Ctrl-C raise ``KeyboardInterrupt`` only at the end of the block, which starts Java.

    PySpark, interrupted while it waits for Java, leaves a Java behind that never ends.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda signum, _frame: held.append(signum))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        raise KeyboardInterrupt


@contextmanager
def quiet_interrupt(spark: SparkSession) -> Iterator[None]:
    """Let Ctrl-C raise ``KeyboardInterrupt`` in the block, and turn off all logging first.

    Logging stays off, and the next Ctrl-C ends the process at once, so only a process that is about to end
    may use this.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupt = partial(_interrupt, spark)
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, before)


def _interrupt(spark: SparkSession, signum: int, frame: FrameType | None) -> None:
    """Silence Java and Python, then raise.

    Spark's own handler calls Java while another call waits for its answer, which Python refuses. A thread has
    a connection of its own. The interrupt then makes py4j close the connection that waits, and Java cancels
    its job.
    """
    signal.signal(signum, signal.SIG_DFL)
    logging.disable()
    silencing = threading.Thread(target=turn_off, args=(spark, ""), daemon=True)
    silencing.start()
    silencing.join(_TIMEOUT)
    signal.default_int_handler(signum, frame)


def turn_off(spark: SparkSession, logger: str) -> None:
    """Turn off one of Java's loggers and those below it; the empty name stands for all."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001
    if jvm is not None:
        levels = jvm.org.apache.logging.log4j.Level
        configurator = jvm.org.apache.logging.log4j.core.config.Configurator
        configurator.setAllLevels(logger, levels.OFF)
