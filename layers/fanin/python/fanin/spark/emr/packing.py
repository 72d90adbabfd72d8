"""Packs fanin into one zip, which Spark puts on the path of the driver and of all executors."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
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
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, file in _files(resources.files("fanin"), "fanin"):
                info = zipfile.ZipInfo(name, _EPOCH)
                info.external_attr, info.compress_type = _MODE, zipfile.ZIP_DEFLATED
                packed.writestr(info, file.read_bytes())
        return cls._of(content.getvalue(), "the installed package")

    @classmethod
    def wheel(cls, file: Path) -> Package:
        """A wheel of fanin.

        Raises:
            InvalidRequest: the file cannot be read, or is not a wheel of fanin.
        """
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


def _files(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """All files below a folder, in the same order on every machine."""
    for one in sorted(folder.iterdir(), key=lambda found: found.name):
        inner = f"{name}/{one.name}"
        if one.is_file():
            yield inner, one
        elif one.name != "__pycache__":
            yield from _files(one, inner)
