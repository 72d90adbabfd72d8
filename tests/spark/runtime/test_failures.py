"""What a failure of Spark says, in a line."""

import gzip
from pathlib import Path

import pyspark
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fanin.spark.runtime.failures import root_cause


def test_the_root_cause_names_the_file_that_was_read(spark: SparkSession, tmp_path: Path) -> None:
    # Given a compressed file that is not complete, whose decompression knows no file
    file = tmp_path / "half.csv.gz"
    file.write_bytes(gzip.compress(b"line\n" * 9_000)[:-20])

    # When it is read
    with pytest.raises((PySparkException, Py4JError)) as failed:
        spark.read.text(str(file)).count()

    # Then the cause says what is wrong, in a line, and which file it was; Spark 3.5 does not say that
    told = root_cause(failed.value)
    named = "half.csv.gz: " if pyspark.__version__ >= "4" else ""
    assert f"{named}java.io.EOFException: Unexpected end of input stream" in told
    assert len(told.splitlines()) == 1


def test_an_error_of_python_is_itself() -> None:
    assert root_cause(PySparkException(" no such table\n")) == "no such table"
