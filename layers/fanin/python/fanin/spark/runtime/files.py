"""Single files next to datasets, wherever Spark writes these: on S3, HDFS or this machine."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Write a file, replacing what is there; on S3 readers never see a part of it.

    Args:
        spark: the session, whose file systems are used.
        path: as Spark takes it.
        text: written as UTF-8.
    """
    folder, _, name = path.rpartition("/")
    Folder(spark, folder or ".").write(name, text)


class Folder:
    """A folder of small files and of datasets.

    Args:
        spark: the session, whose file systems are used.
        path: as Spark takes it.

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
        """The path of the file or dataset with this name."""
        return f"{self.path}/{name}"

    def finished(self, name: str) -> bool:
        """Whether a dataset of this name was written completely."""
        return bool(self._system.exists(self._file(f"{name}/_SUCCESS")))

    def read(self, name: str) -> str | None:
        """The text of a file; None if there is no such file."""
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
            name: of the file, in this folder.
            text: written as UTF-8.
            replace: whether to replace a file that is there. If two writers write a new file on S3 at the
                same time, both may be told that they wrote it; read it afterwards to see whose it is.

        Returns:
            Whether the file was written.
        """
        return self.write_bytes(name, text.encode(), replace=replace)

    def write_bytes(self, name: str, content: bytes, *, replace: bool = True) -> bool:
        """Write a file that is not text; as ``write``."""
        file = self._file(name)
        try:
            stream = self._system.create(file, replace)
        except Py4JJavaError:
            if not replace and self._system.exists(file):
                return False
            raise
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        return True

    def delete(self, name: str = "") -> None:
        """Delete a file or a dataset that may be there, or without a name the folder itself."""
        self._system.delete(self._file(name), True)

    def _file(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.at(name) if name else self.path)
