"""Paths: which of them name the same place, and which of them Spark takes for patterns."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fanin.spark.runtime.object_store import S3


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
