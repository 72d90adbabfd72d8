"""Whether two paths name the same place."""

from __future__ import annotations

from pathlib import Path

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
