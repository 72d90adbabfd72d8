"""Failures of file systems, as Java says them, in words that say what to do."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException

from fanin.spark.runtime.failures import refused_storage


@pytest.mark.parametrize(
    ("java", "told"),
    [
        (
            "hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/my runs/a.csv",
            "file:/my runs/a.csv is a file, so nothing can be written below it; name another folder",
        ),
        (
            "Mkdirs failed to create file:/my runs/rows-8f/_temporary/0/x (exists=false, cwd=file:/)",
            "the folder file:/my runs/rows-8f cannot be made; name a folder that this job may write",
        ),
        (
            "Mkdirs failed to create /my runs/x",
            "the folder /my runs/x cannot be made; name a folder that this job may write",
        ),
        (
            "SparkException: failed: java.io.FileNotFoundException: /my runs/a.csv (Permission denied)",
            "this job has no permission to read or write /my runs/a.csv; give it the permission",
        ),
        (
            "java.nio.file.AccessDeniedException: s3://lake/acks: Access Denied",
            "no permission: java.nio.file.AccessDeniedException: s3://lake/acks: Access Denied; give it to",
        ),
        (
            "FileAlreadyExistsException: a",
            "something is in the way: FileAlreadyExistsException: a; name",
        ),
        (
            'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"',
            "this Spark has no file system for paths that begin with s3:; name a folder of this machine",
        ),
        (
            "java.io.IOException: No space left on device",
            "the disk is full: java.io.IOException: No space left",
        ),
    ],
)
def test_a_path_that_cannot_be_used_is_named(java: str, told: str) -> None:
    assert (refused_storage(PySparkException(java)) or "").startswith(told)


def test_a_path_that_does_not_exist_is_clear() -> None:
    said = "[PATH_NOT_FOUND] Path does not exist: file:/nowhere. SQLSTATE: 42K03"
    assert refused_storage(AnalysisException(said)) == said


@pytest.mark.parametrize("other", ["java.lang.NullPointerException", "file:/a is not a Parquet file {0}"])
def test_other_failures_need_a_traceback(other: str) -> None:
    assert refused_storage(PySparkException(other)) is None


def test_a_file_that_cannot_be_read_is_named_unless_nobody_answered() -> None:
    said = "Encountered error while reading file file:///in/a%20b.parquet. SQLSTATE: KD001"

    told = refused_storage(PySparkException(said))

    assert told is not None
    assert told.startswith("file:///in/a%20b.parquet cannot be read: Encountered error while reading file")
    assert refused_storage(PySparkException(f"java.net.SocketTimeoutException: {said}")) is None
