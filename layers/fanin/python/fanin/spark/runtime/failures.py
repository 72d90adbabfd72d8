"""What a failure of Spark says, in a line; what to do about it; which error of fanin a task ended with."""

import re
from collections.abc import Sequence
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from fanin import errors
from fanin.errors import FaninError
from fanin.spark.runtime.files import DENIED

_FILE: Final = re.compile(r"(?:reading|footer for) file:? ?(\S+?)\.?(?:\s|$)")
"""How Spark names the file that it was reading, in the middle of a chain of causes."""

_TRACEBACK: Final = "Traceback (most recent call last):\n"
_RAISED: Final = re.compile(rf"(?:\s.*\n|\n)*{re.escape(errors.__name__)}\.(?P<name>\w+): (?P<message>.*)")
"""The end of a traceback of Python: indented lines, and then what was raised."""


def raised_in_task(error: PySparkException | Py4JError) -> tuple[str, str] | None:
    """Code and message of the error of fanin that a task ended with, if it is one.

    Spark passes on the text of a traceback.
    """
    # The last of chained errors is the one that was raised.
    _, found, trace = str(error).rpartition(_TRACEBACK)
    raised = _RAISED.match(trace) if found else None
    kind = getattr(errors, raised["name"], None) if raised else None
    if raised is None or not (isinstance(kind, type) and issubclass(kind, FaninError)):
        return None
    return kind.code, raised["message"].strip()


def causes(error: Exception) -> list[str]:
    """An error and its causes, which Java has in a chain; the root cause is the last."""
    texts = [str(error).strip()]
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        texts = [str(cause.toString())]
        try:
            while (below := cause.getCause()) is not None:
                cause = below
                texts.append(str(cause.toString()))
        except Py4JError:  # Java has ended as well
            return [str(error)]
    return texts


def unread_file(texts: Sequence[str]) -> str | None:
    """The file that Spark was reading, as ``causes`` name it; None if they name none."""
    named = (_FILE.search(text) for text in texts)
    return next((found[1] for found in named if found), None)


def root_cause(error: Exception) -> str:
    """The root cause of an error; and the file that was read."""
    texts = causes(error)
    root, file = texts[-1], unread_file(texts)
    return root if file is None or file in root else f"{file}: {root}"


_KNOWN: Final = (
    (
        "Parent path is not a directory|Mkdirs failed|FileAlreadyExistsException|PATH_ALREADY_EXISTS",
        "something is in the way, or this job may not write there: {}; name another folder",
    ),
    (DENIED, "no permission: {}; give it to this job, or name another folder"),
    ("PATH_NOT_FOUND", "{}"),
    (
        "No FileSystem for scheme",
        "{}; name a folder of this machine, or run the job where Spark has one, as EMR has for s3://",
    ),
    ("No space left on device", "the disk is full: {}"),
)
_TRANSIENT: Final = re.compile(
    r"^(java\.net\.|javax\.net\.|com\.amazonaws\.|software\.amazon\.|org\.apache\.http\.|.*(Timeout|InterruptedIO))"
)
"""Root causes that say nothing of a file: nobody answered."""


def refused_storage(error: PySparkException | Py4JError) -> str | None:
    """What to do about a path that cannot be read or written, or a damaged file; None for other failures."""
    cause, texts = root_cause(error), causes(error)
    for pattern, told in _KNOWN:
        if re.search(pattern, cause):
            return told.format(cause)
    file = unread_file(texts)
    if file is None or _TRANSIENT.search(texts[-1]):
        return None
    why = texts[-1].splitlines()[0]
    return f"{file} cannot be read: {why}. Write it anew in a form that Spark reads, or leave it out"
