"""Packs fanin and scripts of users into zips, which Spark puts on the path of driver and executors."""

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Final, Self

from fanin.errors import InvalidRequest

ENTRY: Final = "fanin/spark/jobs/__main__.py"  # the script that starts any job
JOBS: Final = "fanin-jobs"  # its name beside the scripts of users


@dataclass(frozen=True)
class Script:
    """A script, and what it imports: fanin with the script of its jobs, or one of a user.

    Attributes:
        name: of the script, without ``.py``.
        entry: the script, which spark-submit starts.
        files: a zip of what it imports; None if that is nothing but fanin and what EMR has. A wheel is a zip,
            too, but Spark takes only names that end in zip from ``--py-files``.
    """

    name: str
    entry: bytes
    files: bytes | None = None

    @property
    def digest(self) -> str:
        """Names script and files: the same code has the same digest on every machine."""
        return hashlib.sha256(hashlib.sha256(self.entry).digest() + (self.files or b"")).hexdigest()

    @classmethod
    def installed(cls) -> Self:
        """The fanin of this process, be it installed, an editable checkout or a zip itself."""
        return cls._of_jobs(_zip(_files(resources.files("fanin"), "fanin")), "the installed package")

    @classmethod
    def wheel(cls, file: Path) -> Self:
        """A wheel of fanin."""
        try:
            return cls._of_jobs(file.read_bytes(), str(file))
        except OSError as error:
            raise InvalidRequest(f"{file}: {error.strerror}") from error

    @classmethod
    def _of_jobs(cls, content: bytes, name: str) -> Self:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                return cls(JOBS, packed.read(ENTRY), content)
        except (zipfile.BadZipFile, KeyError) as error:
            raise InvalidRequest(f"{name} is not a wheel of fanin: {error}") from error

    @classmethod
    def of(cls, script: Path, files: Sequence[Path] = ()) -> Self:
        """Pack a script of a user.

        Args:
            script: a file of Python.
            files: what it imports or reads: files, and folders with all that is in them but hidden files.
                Each is on the path by its own name, as if it lay beside the script.
        """
        packed: dict[str, Traversable] = {}
        for path in (script, *files):
            if path.resolve().name.partition(".")[0] == "fanin":
                raise InvalidRequest(f"{path} would hide the package fanin, which is there anyway; rename it")
        try:
            path = script
            entry = script.read_bytes()
            compile(entry, str(script), "exec", dont_inherit=True)
            for path in files:
                name = path.resolve().name
                found = {name: path} if path.is_file() else dict(_files(path, name))
                if twice := packed.keys() & found.keys():
                    raise InvalidRequest(
                        f"{path} would replace {min(twice)} of another file; rename one of them"
                    )
                packed |= found
        except OSError as error:
            raise InvalidRequest(f"{path}: {error.strerror}") from error
        except (SyntaxError, ValueError) as error:
            raise InvalidRequest(f"{script} is not a script of Python: {error}") from error
        return cls(script.stem, entry, _zip(packed.items()) if packed else None)


def _files(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """All files below a folder, in the same order on every machine."""
    for one in sorted(folder.iterdir(), key=lambda found: found.name):
        inner = f"{name}/{one.name}"
        if one.name == "__pycache__" or one.name.startswith("."):
            continue
        yield from [(inner, one)] if one.is_file() else _files(one, inner)


def _zip(files: Iterable[tuple[str, Traversable]]) -> bytes:
    """Zip files under their names, to the same bytes on every machine.

    Folders have entries too, since Python finds no package without ``__init__.py`` in a zip otherwise.
    """
    content, folders = io.BytesIO(), set[str]()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, file in files:
            parents = [f"{parent}/" for parent in PurePosixPath(name).parents if parent.name]
            for folder in sorted(set(parents) - folders):
                packed.writestr(zipfile.ZipInfo(folder), b"")  # of 1980, where that of files would differ
            folders.update(parents)
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            packed.writestr(info, file.read_bytes())
    return content.getvalue()
