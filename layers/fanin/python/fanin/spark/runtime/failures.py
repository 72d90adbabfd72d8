"""What a failure of Spark says, in a line; and which error of fanin a task ended with."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from fanin import errors
from fanin.errors import FaninError

_FILE: Final = re.compile(r"(?:reading|footer for) file:? ?(\S+?)\.?(?:\s|$)")
"""How Spark names the file that it was reading, in the middle of a chain of causes."""

_TRACEBACK: Final = "Traceback (most recent call last):\n"
_RAISED: Final = re.compile(rf"(?:\s.*\n|\n)*{re.escape(errors.__name__)}\.(?P<name>\w+): (?P<message>.*)")
"""The end of a traceback of Python: indented lines, and then what was raised."""


class Raised(NamedTuple):
    """An error of fanin that a task raised.

    Attributes:
        code: of the error.
        message: what it says.
    """

    code: str
    message: str


def raised_in_task(error: PySparkException | Py4JError) -> Raised | None:
    """The error of fanin that a task ended with, which Spark passes on as the text of a traceback.

    Returns:
        None if no task failed, or it failed with an error that is not fanin's.
    """
    # The last of chained errors is the one that was raised.
    _, found, trace = str(error).rpartition(_TRACEBACK)
    raised = _RAISED.match(trace) if found else None
    kind = getattr(errors, raised["name"], None) if raised else None
    if raised is None or not (isinstance(kind, type) and issubclass(kind, FaninError)):
        return None
    return Raised(kind.code, raised["message"].strip())


def root_cause(error: PySparkException | Py4JError) -> str:
    """The root cause of an error, which Java has at the end of a chain; and the file that was read."""
    texts = [str(error).strip()]
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        texts = [str(cause.toString())]
        try:
            while (below := cause.getCause()) is not None:
                cause = below
                texts.append(str(cause.toString()))
        except Py4JError:  # Java has ended as well
            return str(error)
    root = texts[-1]
    named = (_FILE.search(text) for text in texts)
    file = next((found[1] for found in named if found), None)
    return root if file is None or file in root else f"{file}: {root}"
