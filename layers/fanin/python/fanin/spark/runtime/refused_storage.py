"""What Java says when a file system refuses a path, in words that say what to do."""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from fanin.spark.runtime.failures import root_cause
from fanin.spark.runtime.files import DENIED

_KNOWN: Final = (
    (
        re.compile(r"Parent path is not a directory: (?P<path>.+)"),
        "{path} is a file, so nothing can be written below it; name another folder",
    ),
    (
        re.compile(r"Mkdirs failed to create (?P<path>.+?)(?:/_temporary.*?)?(?: \(exists=|$)", re.MULTILINE),
        "the folder {path} cannot be made; name a folder that this job may write",
    ),
    (
        re.compile(r"(?:.*: |^)(?P<path>.+) \(Permission denied\)", re.MULTILINE),
        "this job has no permission to read or write {path}; give it the permission, or name another folder",
    ),
    (
        DENIED,
        "no permission: {all}; give it to this job, or name another folder",
    ),
    (
        re.compile(r"FileAlreadyExistsException|PATH_ALREADY_EXISTS"),
        "something is in the way: {all}; name another folder",
    ),
    (re.compile(r"PATH_NOT_FOUND"), "{all}"),
    (
        re.compile(r"No FileSystem for scheme \"(?P<scheme>[^\"]+)\""),
        (
            "this Spark has no file system for paths that begin with {scheme}:; name a folder of this"
            " machine, or run the job where Spark has one, as EMR has for s3://"
        ),
    ),
    (re.compile(r"No space left on device"), "the disk is full: {all}"),
)


def refused_storage(error: PySparkException | Py4JError) -> str | None:
    """What to do about a failure whose cause is a path that cannot be read or written.

    Returns:
        None for any other failure, of which a traceback is needed.
    """
    cause = root_cause(error)
    for pattern, told in _KNOWN:
        if found := pattern.search(cause):
            return told.format(all=cause, **found.groupdict())
    return None
