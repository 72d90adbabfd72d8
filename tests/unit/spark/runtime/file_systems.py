"""File systems of Hadoop in memory, as far as ``Folder`` uses them, on which a driver can die at any step.

Each kind differs where it matters to a writer: when a file is there, and whether a rename replaces one.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from py4j.protocol import Py4JJavaError


class Died(Exception):
    """The driver is gone."""


class Raised(Py4JJavaError):
    """What Java raises."""

    def __init__(self, text: str) -> None:
        Exception.__init__(self, text)

    def __str__(self) -> str:
        return str(self.args[0])


class Refused(Raised):
    """A file is in the way."""

    def __init__(self, path: str) -> None:
        super().__init__(f"FileAlreadyExistsException: {path}")


class FileSystem:
    """HDFS: a file is there, and empty, once it is created; a rename replaces nothing.

    A folder is there as long as a file is in it; a rename to a folder moves the file into it.

    Args:
        scheme: of its paths.
        objects: it is a store of objects instead: a file is there when its stream is closed, as a whole.
        conditional: such a store looks once more, at that time, whether a file is in the way.
        late: what is no file can be opened, and not read.

    Attributes:
        files: path → content.
        steps: how many calls change something before the driver dies; None for any number.
    """

    def __init__(
        self, scheme: str = "hdfs", *, objects: bool = False, conditional: bool = False, late: bool = False
    ) -> None:
        self.scheme = scheme
        self.objects = objects
        self.conditional = conditional
        self.late = late
        self.files: dict[str, bytes] = {}
        self.steps: int | None = None

    def session(self) -> Any:
        """What ``Folder`` asks a session for."""
        path = lambda text: _Path(text, self)  # noqa: E731
        text_of = lambda stream, _encoding: stream.read().decode()  # noqa: E731
        io = SimpleNamespace(IOUtils=SimpleNamespace(toString=text_of))
        apache = SimpleNamespace(
            hadoop=SimpleNamespace(fs=SimpleNamespace(Path=path)), commons=SimpleNamespace(io=io)
        )
        java = SimpleNamespace(hadoopConfiguration=lambda: None)
        jvm = SimpleNamespace(org=SimpleNamespace(apache=apache))
        return SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm, _jsc=java))

    def step(self) -> None:
        if self.steps is not None:
            if not self.steps:
                raise Died
            self.steps -= 1

    def getUri(self) -> Any:  # noqa: N802
        return SimpleNamespace(getScheme=lambda: self.scheme)

    def setWriteChecksum(self, _wanted: bool) -> None:  # noqa: N802
        """There are none."""

    def exists(self, path: _Path) -> bool:
        return any(file == path.text or file.startswith(f"{path.text}/") for file in self.files)

    def isDirectory(self, path: _Path) -> bool:  # noqa: N802
        return any(file.startswith(f"{path.text}/") for file in self.files)

    def open(self, path: _Path) -> Any:
        if not self.late:
            self._content(path)
        return SimpleNamespace(read=lambda: self._content(path), close=lambda: None)

    def _content(self, path: _Path) -> bytes:
        if path.text not in self.files:
            raise Raised(f"FileNotFoundException: {path}")
        return self.files[path.text]

    def create(self, path: _Path, replace: bool) -> _Stream:
        self.step()
        if self.isDirectory(path) or (not replace and self.exists(path)):
            raise Refused(path.text)
        if not self.objects:
            self.files[path.text] = b""
        return _Stream(self, path, sure=not replace and self.conditional)

    def createFile(self, path: _Path) -> _Builder:  # noqa: N802
        return _Builder(self, path)

    def rename(self, source: _Path, target: _Path) -> bool:
        assert not self.objects, "a store of objects would copy the file"
        self.step()
        into = f"{target.text}/{source.text.rpartition('/')[2]}" if self.isDirectory(target) else target.text
        if into in self.files or not self.exists(source):
            return False
        self.files[into] = self.files.pop(source.text)
        return True

    def delete(self, path: _Path, recursive: bool) -> bool:
        self.step()
        below = [file for file in self.files if recursive and file.startswith(f"{path.text}/")]
        return [self.files.pop(file, None) for file in (path.text, *below)] != [None]


class _Path:
    def __init__(self, text: str, system: FileSystem) -> None:
        self.text = text
        self._system = system

    def __str__(self) -> str:
        return self.text

    def getFileSystem(self, _conf: object) -> FileSystem:  # noqa: N802
        return self._system


class _Builder:
    def __init__(self, system: FileSystem, path: _Path) -> None:
        self._system, self._path, self._replace, self._options = system, path, True, set[str]()

    def overwrite(self, replace: bool) -> _Builder:
        self._replace = replace
        return self

    def recursive(self) -> _Builder:
        return self

    def opt(self, name: str, value: bool) -> _Builder:
        self._options |= {name} if value else set()
        return self

    def build(self) -> _Stream:
        stream = self._system.create(self._path, self._replace)
        stream.sure = stream.sure and "fs.option.create.conditional.overwrite" in self._options
        return stream


class _Stream:
    def __init__(self, system: FileSystem, path: _Path, *, sure: bool) -> None:
        self._system, self._path, self.sure, self._content = system, path, sure, b""

    def write(self, content: bytearray) -> None:
        half = len(content) // 2
        for part in (content[:half], content[half:]):
            self._system.step()
            self._content += bytes(part)
            if not self._system.objects:
                self._system.files[self._path.text] = self._content

    def close(self) -> None:
        self._system.step()
        if self._system.objects:
            if self.sure and self._system.exists(self._path):
                raise Refused(self._path.text)
            self._system.files[self._path.text] = self._content
