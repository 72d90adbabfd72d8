"""What Ctrl-C does while Java starts, and while a job runs; that Java is silent then is tested on Spark."""

import logging
import signal
import threading
from collections.abc import Iterator
from unittest.mock import MagicMock

import pytest

from fanin.spark.runtime.session import held_interrupt, quiet_interrupt


@pytest.fixture(autouse=True)
def before() -> Iterator[object]:
    """The handler of this process; it and logging are as before after the test."""
    handler, level = signal.getsignal(signal.SIGINT), logging.root.manager.disable
    yield handler
    signal.signal(signal.SIGINT, handler)
    logging.disable(level)


def test_while_java_starts_it_waits(before):
    # Given a start that puts a handler of its own into place, as PySpark's does
    done = []

    def start() -> None:
        with held_interrupt():
            signal.raise_signal(signal.SIGINT)
            done.append("started")
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    # When somebody presses Ctrl-C, then the start goes on to its end
    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_of_the_start_is_not_hidden(before):
    def start() -> None:
        with held_interrupt():
            signal.raise_signal(signal.SIGINT)
            raise ValueError("no Java")

    with pytest.raises(ValueError, match="no Java"):
        start()
    assert signal.getsignal(signal.SIGINT) is before


def test_it_turns_off_all_logging_and_the_next_one_ends_the_process():
    spark = MagicMock()
    with pytest.raises(KeyboardInterrupt), quiet_interrupt(spark):
        signal.raise_signal(signal.SIGINT)

    log4j = spark.sparkContext._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setAllLevels.assert_called_once_with("", log4j.Level.OFF)
    assert not logging.getLogger("py4j").isEnabledFor(logging.CRITICAL)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL


def test_without_it_everything_is_as_before(before):
    with quiet_interrupt(MagicMock()):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    assert logging.getLogger("py4j").isEnabledFor(logging.CRITICAL)


def test_other_threads_leave_handlers_alone(before):
    # Python allows handlers in the main thread only
    found = []

    def run() -> None:
        with held_interrupt(), quiet_interrupt(MagicMock()):
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [before]
