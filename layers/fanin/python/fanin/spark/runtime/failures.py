"""What a failure of Spark says, in a line."""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

_FILE: Final = re.compile(r"(?:reading|footer for) file:? ?(\S+?)\.?(?:\s|$)")
"""How Spark names the file that it was reading, in the middle of a chain of causes."""


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
