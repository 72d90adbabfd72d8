"""Single files next to datasets, wherever Spark writes these: on S3, HDFS or this machine.

A file is there as a whole or not at all, even if the driver dies while it writes. A store of objects has a
file when its stream is closed. Elsewhere a file is there, and empty, as soon as it is created. So it is
written beside, under a name of its own, and then renamed.
"""

import os
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from fanin.errors import ServiceUnavailable
from fanin.spark.runtime.places import BUCKETS, canonical

_SURELY: Final = "fs.option.create.conditional.overwrite"
"""Has S3A, from Hadoop 3.4.2 on, refuse to replace a file also when it is written, and not only when it is
created. Others ignore it (Options.CreateFileOptionKeys in Hadoop's documentation)."""
_RENAMES: Final = 5
"""How often a file is put in the place of another, which other drivers may replace at the same time."""
MISSING: Final = re.compile(r"^(?:: )?[\w.]*FileNotFoundException", re.MULTILINE)
"""What Hadoop says of what is not there: the error itself, which begins a line, and not one of its causes."""
DENIED: Final = re.compile("AccessDenied|AccessControl|Access Denied|Forbidden|Permission denied")
"""What file systems say of a place that this job may not look into, or not write."""
UNANSWERED: Final = re.compile("UnsupportedOperationException|UC volume")
"""What Hadoop's file systems say of volumes of Databricks, which only Spark itself reads and writes."""


class Folder:
    """A folder of small files and of datasets; one that is only read keeps the checksums of its system."""

    def __init__(self, spark: SparkSession, path: str, *, only_read: bool = False) -> None:
        self.path = path.rstrip("/") or "/"
        context: Any = spark.sparkContext
        self._jvm = context._jvm  # noqa: SLF001  Python has no other way to Hadoop's file systems
        self._system = self._file("").getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
        if not only_read:
            self._system.setWriteChecksum(False)
        self._scheme = str(self._system.getUri().getScheme())

    def at(self, name: str) -> str:
        """The path of the file or dataset with this name."""
        return f"{self.path.rstrip('/')}/{name}"

    def there(self, name: str = "") -> bool:
        """Whether there is a file, or some of a dataset, of this name; without one, the folder itself."""
        return bool(self._system.exists(self._file(name)))

    def finished(self, name: str) -> bool:
        """Whether a dataset of this name was written completely."""
        return self.there(f"{name}/_SUCCESS")

    @property
    def uri(self) -> str:
        """The path with its file system, from the root."""
        return str(self._system.makeQualified(self._file("")).toString())

    @property
    def place(self) -> str:
        """Its URI, the same for all names that it has on S3 or on this machine, with a slash."""
        return canonical(self.uri)

    def entries(self, pattern: str) -> Iterator[Any] | None:
        """Hadoop's ``FileStatus`` of what matches a glob, or of a file in its place; None if there is none.

        Java matches names, since a folder may have very many entries.
        """
        folder = self._file("")
        matching = self._jvm.org.apache.hadoop.fs.GlobFilter(pattern)
        try:
            there = self._system.getFileStatus(folder)
            return iter([there] if there.isFile() else self._system.listStatus(folder, matching))
        except Py4JJavaError as error:
            if MISSING.search(str(error)):  # or another run has just deleted it
                return None
            raise

    def read(self, name: str) -> str | None:
        """The text of a file; None if there is no such file."""
        file = self._file(name)
        try:
            return self._text(file)
        except Py4JJavaError:
            if not self._system.exists(file):
                return None
        # Another driver may have put it there meanwhile, or replaced it.
        return self._text(file)

    def _text(self, file: Any) -> str:
        stream = self._system.open(file)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, given: str | bytes, *, replace: bool = True) -> bool:
        """Write a file, as a whole or not at all, a text as UTF-8; says whether it was written.

        Without ``replace``, one of two writers is told that it wrote the file. Only on S3 with Hadoop before
        3.4.2, or with EMRFS (EMR before 7.10), may both be told so, if they write in the same moment; read
        the file afterwards to see whose it is.
        """
        file, content = self._file(name), given.encode() if isinstance(given, str) else given
        if self._scheme in BUCKETS:
            if replace:
                _fill(self._system.create(file, True), content)
                return True
            return self._unless_there(file, lambda: self._store(file, content))
        # Spark does not read files whose names begin with a dot, if the folder is a dataset.
        beside = self._file(f".{name}-{uuid.uuid4().hex}")
        _fill(self._system.create(beside, True), content)
        try:
            return self._replace(beside, file) if replace else self._put(beside, file)
        finally:
            self._system.delete(beside, False)

    def _store(self, file: Any, content: bytes) -> bool:
        builder = self._system.createFile(file).overwrite(False).recursive()
        _fill(builder.opt(_SURELY, True).build(), content)
        return True

    def _replace(self, beside: Any, file: Any) -> bool:
        """Rename a file to one that may be there: on this machine that is replaced, elsewhere in the way."""
        for _ in range(_RENAMES):
            if self._unless_there(file, lambda: self._system.rename(beside, file)):
                return True
            if not self._system.exists(beside):
                break  # another job has deleted the folder, and what is there now is its own
            self._system.delete(file, False)
        raise ServiceUnavailable(f"{file} cannot be replaced; see who else writes it, and start again")

    def _put(self, beside: Any, file: Any) -> bool:
        """Give a file its name, unless another file has it."""
        if self._scheme == "file":
            try:
                os.link(*(self._system.makeQualified(one).toUri().getPath() for one in (beside, file)))
            except FileExistsError:
                return False
            except OSError:
                pass  # some file systems, such as mounted buckets, have no links
            else:
                return True
        if self._system.exists(file):
            return False
        if self._unless_there(file, lambda: self._system.rename(beside, file)):
            return True
        if self._system.exists(file):
            return False
        raise ServiceUnavailable(
            f"{file} cannot be written; see whether the folder is there, and start again"
        )

    def _unless_there(self, file: Any, write: Callable[[], Any]) -> bool:
        """Write a file; False if one is in the way, which file systems say in one way or another."""
        try:
            return bool(write())
        except Py4JJavaError:
            if self._system.exists(file):
                return False
            raise

    def delete(self, name: str = "") -> None:
        """Delete a file or a dataset that may be there, or without a name the folder itself."""
        file = self._file(name)
        if not self._system.delete(file, True) and self._system.exists(file):
            raise ServiceUnavailable(f"{file} cannot be deleted; see who else writes it, and start again")

    def _file(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.at(name) if name else self.path)


def _fill(stream: Any, content: bytes) -> None:
    """Write a file and close it. If that fails it stays open: a store would make a half object of it."""
    stream.write(bytearray(content))
    stream.close()
