"""Single files beside the datasets, wherever Spark writes those: on S3, HDFS or this machine."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Write a file, replacing what is there; nobody sees half of it on S3.

    Args:
        spark: whose file systems are used.
        path: as one gives it to Spark.
        text: is written as UTF-8.
    """
    folder, _, name = path.rpartition("/")
    Folder(spark, folder or ".").write(name, text)


class Folder:
    """A folder of small files and of datasets.

    Args:
        spark: whose file systems are used.
        path: as one gives it to Spark.

    Attributes:
        path: without a slash at its end.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path.rstrip("/")
        context: Any = spark.sparkContext
        self._jvm = context._jvm  # noqa: SLF001  Python has no other way to Hadoop's file systems
        self._system = self._file("").getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
        self._system.setWriteChecksum(False)

    def at(self, name: str) -> str:
        """The path of what has this name."""
        return f"{self.path}/{name}"

    def finished(self, name: str) -> bool:
        """Whether a dataset of this name was written to its end."""
        return bool(self._system.exists(self._file(f"{name}/_SUCCESS")))

    def read(self, name: str) -> str | None:
        """The text of a file; None if it is not there."""
        file = self._file(name)
        if not self._system.exists(file):
            return None
        stream = self._system.open(file)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str, *, replace: bool = True) -> bool:
        """Write a file.

        Args:
            name: in this folder.
            text: is written as UTF-8.
            replace: what is there; if not, it stays. Of two that write a new file at once on S3 both may
                believe to be the first, so read it afterwards to see whose it is.

        Returns:
            Whether it was written.
        """
        file = self._file(name)
        try:
            stream = self._system.create(file, replace)
        except Py4JJavaError:
            if not replace and self._system.exists(file):
                return False
            raise
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()
        return True

    def _file(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.at(name) if name else self.path)
