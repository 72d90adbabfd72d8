"""Lines for people, of a job that goes on when nobody reads them any more."""

from __future__ import annotations

import contextlib
import os
from typing import TextIO


def say(line: str, out: TextIO, *, end: str = "\n") -> None:
    """Write a line at once; when its reader has gone, as ``head`` does, it and all later ones go nowhere."""
    try:
        print(line, end=end, file=out, flush=True)
    except BrokenPipeError:
        with contextlib.suppress(OSError):  # of a stream that is no file
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, out.fileno())
            os.close(nowhere)
