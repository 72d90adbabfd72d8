"""Paths: as people give them, which of them name the same place, and which Spark takes for patterns."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from fanin.domain.limits import shown
from fanin.errors import InvalidRequest
from fanin.spark.runtime.object_store import S3

_SHORTENED: Final = re.compile(r"[a-z][a-z0-9+.-]+:/(?!/)", re.IGNORECASE)


def path_of(what: str, given: str | os.PathLike[str]) -> str:
    """The text of a path.

    Raises:
        InvalidRequest: it is not a path, or is empty; or a ``Path`` was made of a URI, which loses a slash.
    """
    path = given if isinstance(given, str) else os.fspath(given) if isinstance(given, os.PathLike) else None
    if not isinstance(path, str) or not path.strip():
        raise InvalidRequest(f"{what} must be a path, such as s3://bucket/data or a Path, not {shown(given)}")
    if path is not given and _SHORTENED.match(path):
        scheme, _, rest = path.partition(":/")
        raise InvalidRequest(f"{what} is {path}: a Path has one slash; give the text {scheme}://{rest}")
    return path


def canonical(uri: str) -> str:
    """A URI, with a slash at its end, that is the same for all names of a place on S3 or on this machine.

    Args:
        uri: with its file system, from the root, as Hadoop's ``makeQualified`` gives it.
    """
    scheme, colon, rest = uri.partition(":")
    if scheme == "file":
        rest = str(Path(rest).resolve())
    return f"{'s3' if scheme in S3 else scheme}{colon}{rest.rstrip('/')}/"


_GLOB: Final = frozenset("*?[]{}\\")


def is_pattern(path: str) -> bool:
    """Whether Spark would take a path for a pattern."""
    return bool(_GLOB & set(path))


def escaped(path: str) -> str:
    """A path that Spark does not take for a pattern."""
    return "".join(f"\\{letter}" if letter in _GLOB else letter for letter in path)
