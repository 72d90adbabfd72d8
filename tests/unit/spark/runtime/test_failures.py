"""What a failure is: which error of fanin a task ended with, and what storage refused."""

import pytest
from pyspark.errors import AnalysisException, PySparkException

from fanin.spark.runtime.failures import raised_in_task, refused_storage

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
def test_an_error_of_fanin_is_its_own_code_and_message(text):
    assert raised_in_task(PySparkException(text)) == ("not-configured", QUEUE)


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
def test_other_failures_are_none_of_fanin(text):
    assert raised_in_task(PySparkException(text)) is None


@pytest.mark.parametrize(
    ("java", "told"),
    [
        *(
            (java, f"something is in the way, or this job may not write there: {java}; name another folder")
            for java in (
                "hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/my runs/a.csv",
                "Mkdirs failed to create file:/my runs/rows-8f/_temporary/0/x (exists=false, cwd=file:/)",
                "FileAlreadyExistsException: a",
            )
        ),
        (
            "SparkException: failed: java.io.FileNotFoundException: /my runs/a.csv (Permission denied)",
            "no permission: SparkException: failed: java.io.FileNotFoundException: /my runs/a.csv (Permiss",
        ),
        (
            "java.nio.file.AccessDeniedException: s3://lake/acks: Access Denied",
            "no permission: java.nio.file.AccessDeniedException: s3://lake/acks: Access Denied; give it to",
        ),
        (
            'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"',
            'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"; name a',
        ),
        (
            "java.io.IOException: No space left on device",
            "the disk is full: java.io.IOException: No space left",
        ),
    ],
)
def test_a_path_that_cannot_be_used_is_named(java, told):
    assert (refused_storage(PySparkException(java)) or "").startswith(told)


def test_a_path_that_does_not_exist_is_clear():
    said = "[PATH_NOT_FOUND] Path does not exist: file:/nowhere. SQLSTATE: 42K03"
    assert refused_storage(AnalysisException(said)) == said


@pytest.mark.parametrize("other", ["java.lang.NullPointerException", "file:/a is not a Parquet file {0}"])
def test_other_failures_need_a_traceback(other):
    assert refused_storage(PySparkException(other)) is None


def test_a_file_that_cannot_be_read_is_named_unless_nobody_answered():
    said = "Encountered error while reading file file:///in/a%20b.parquet. SQLSTATE: KD001"

    told = refused_storage(PySparkException(said))

    assert told is not None
    assert told.startswith("file:///in/a%20b.parquet cannot be read: Encountered error while reading file")
    assert refused_storage(PySparkException(f"java.net.SocketTimeoutException: {said}")) is None
