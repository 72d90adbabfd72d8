"""Which error of fanin a task ended with, from texts as Spark 4.1 and 3.5 pass them on."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from fanin.spark.runtime.failures import Raised, raised_in_task

QUEUE = "https://sqs/work: AWS.SimpleQueueService.NonExistentQueue: no such queue; check the URL"
FRAME = """\
  File "/app/fanin/client/producing/sender.py", line 202, in _batch
    with queue_errors(self._queue_url):
         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
NEW = f"""
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
{FRAME}fanin.errors.NotConfigured: {QUEUE}
"""
OLD = f"""\
An error occurred while calling o57.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times
Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2856)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
{FRAME}botocore.errorfactory.QueueDoesNotExist: An error occurred

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
{FRAME}fanin.errors.NotConfigured: {QUEUE}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
\t... 1 more
"""


@pytest.mark.parametrize("text", [NEW, OLD], ids=["Spark 4", "Spark 3.5"])
def test_an_error_of_fanin_is_its_own_code_and_message(text: str) -> None:
    assert raised_in_task(PySparkException(text)) == Raised("not-configured", QUEUE)


@pytest.mark.parametrize(
    "text",
    [
        "[PATH_NOT_FOUND] Path does not exist: file:/nowhere",
        f"fanin.errors.NotConfigured: {QUEUE}",
        NEW.replace("fanin.errors.NotConfigured", "ValueError: fanin.errors.NotConfigured"),
        NEW.replace("NotConfigured", "Unheard"),
        NEW.replace("NotConfigured", "Mapping"),
        f"{NEW}\nDuring handling of it:\n\nTraceback (most recent call last):\n{FRAME}KeyError: 'x'\n",
    ],
    ids=["none of Python", "no traceback", "in the text of another", "unknown", "no error", "not the last"],
)
def test_other_failures_are_none_of_fanin(text: str) -> None:
    assert raised_in_task(PySparkException(text)) is None
