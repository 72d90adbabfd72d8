"""Packs fanin and scripts of users into zips, which Spark puts on the path of driver and executors."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Final

from fanin.errors import InvalidRequest

ENTRY: Final = "fanin/spark/jobs/__main__.py"
"""The script that starts any job."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can hold. With the times of files, every zip would differ."""
_MODE: Final = 0o644 << 16


@dataclass(frozen=True)
class Package:
    """The code of a job.

    Attributes:
        content: a zip. A wheel is one too, but Spark takes only names that end in zip from ``--py-files``.
        entry: the script that spark-submit starts.
    """

    content: bytes
    entry: bytes

    @property
    def digest(self) -> str:
        """Names the content: the same code has the same digest on every machine."""
        return hashlib.sha256(self.content).hexdigest()

    @classmethod
    def installed(cls) -> Package:
        """The package of this process, be it installed, an editable checkout or a zip itself."""
        return cls._of(_zip(_files(resources.files("fanin"), "fanin")), "the installed package")

    @classmethod
    def wheel(cls, file: Path) -> Package:
        """A wheel of fanin."""
        try:
            content = file.read_bytes()
        except OSError as error:
            raise InvalidRequest(f"{file}: {error.strerror}") from error
        return cls._of(content, str(file))

    @classmethod
    def _of(cls, content: bytes, name: str) -> Package:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                return cls(content, packed.read(ENTRY))
        except (zipfile.BadZipFile, KeyError) as error:
            raise InvalidRequest(f"{name} is not a wheel of fanin: {error}") from error


@dataclass(frozen=True)
class Script:
    """A script of a user, and what it imports.

    Attributes:
        name: of the script, without ``.py``.
        entry: the script, which spark-submit starts.
        files: a zip of what it imports; None if that is nothing but fanin and what EMR has.
    """

    name: str
    entry: bytes
    files: bytes | None = None

    @property
    def digest(self) -> str:
        """Names script and files: the same code has the same digest on every machine."""
        return hashlib.sha256(hashlib.sha256(self.entry).digest() + (self.files or b"")).hexdigest()

    @classmethod
    def of(cls, script: Path, files: Sequence[Path] = ()) -> Script:
        """Pack a script.

        Args:
            script: a file of Python.
            files: what it imports or reads: files, and folders with all that is in them but hidden files.
                Each is on the path by its own name, as if it lay beside the script.

        Raises:
            InvalidRequest: a file cannot be read, two have one name, one would hide fanin, a folder is empty,
                or the script is not Python.
        """
        try:
            entry = script.read_bytes()
            compile(entry, str(script), "exec", dont_inherit=True)
        except OSError as error:
            raise InvalidRequest(f"{script}: {error.strerror}") from error
        except (SyntaxError, ValueError) as error:
            raise InvalidRequest(f"{script} is not a script of Python: {error}") from error
        for path in (script, *files):
            if path.resolve().name.partition(".")[0] == "fanin":
                raise InvalidRequest(f"{path} would hide the package fanin, which is there anyway; rename it")
        packed: dict[str, Traversable] = {}
        for path in files:
            name = path.resolve().name
            found = {name: path} if path.is_file() else dict(_folder(path, name))
            if twice := packed.keys() & found.keys():
                raise InvalidRequest(f"{path} would replace {min(twice)} of another file; rename one of them")
            packed |= found
        return cls(script.stem, entry, _zip(packed.items()) if packed else None)


def _folder(path: Path, name: str) -> Iterator[tuple[str, Traversable]]:
    """All files below a folder of a user."""
    try:
        found = list(_files(path, name))
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror}") from error
    if not found:
        raise InvalidRequest(f"{path} is an empty folder; name the files that the script needs")
    yield from found


def _files(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """All files below a folder, in the same order on every machine."""
    for one in sorted(folder.iterdir(), key=lambda found: found.name):
        inner = f"{name}/{one.name}"
        if one.name == "__pycache__" or one.name.startswith("."):
            continue
        if one.is_file():
            yield inner, one
        else:
            yield from _files(one, inner)


def _zip(files: Iterable[tuple[str, Traversable]]) -> bytes:
    """Zip files under their names, to the same bytes on every machine.

    Folders have entries too, since Python finds no package without ``__init__.py`` in a zip otherwise.
    """
    content, folders = io.BytesIO(), set[str]()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, file in files:
            parents = [f"{parent}/" for parent in PurePosixPath(name).parents if parent.name]
            for folder in sorted(set(parents) - folders):
                packed.writestr(zipfile.ZipInfo(folder, _EPOCH), b"")
            folders.update(parents)
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr, info.compress_type = _MODE, zipfile.ZIP_DEFLATED
            packed.writestr(info, file.read_bytes())
    return content.getvalue()
