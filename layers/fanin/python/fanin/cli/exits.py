"""Exit codes: what a script may rely on."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from fanin.errors import (
    AccessDenied,
    BatchClosed,
    BatchGone,
    BatchNotFound,
    BufferNotFound,
    ChannelRefused,
    CorrelationIdAlive,
    FaninError,
    InvalidRequest,
    JobRunNotFound,
    LimitReached,
    NotConfigured,
    NotRegistered,
    RouteNotFound,
    ServiceUnavailable,
    Throttled,
)


class ExitCode(IntEnum):
    OK = 0
    WRONG = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    UNAVAILABLE = 5
    DENIED = 6
    INTERRUPTED = 130


MEANINGS: Final = {
    ExitCode.OK: "done; a batch that was watched is complete",
    ExitCode.WRONG: "the batch ended otherwise than complete, or something is wrong",
    ExitCode.USAGE: "the command line is wrong",
    ExitCode.NOT_FOUND: "there is no such thing, or no longer",
    ExitCode.REFUSED: "the service refused: invalid, closed, or at its limit",
    ExitCode.UNAVAILABLE: "the service does not answer, or asks to slow down",
    ExitCode.DENIED: "access denied, or not configured",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}

_BY_ERROR: Final[tuple[tuple[type[FaninError], ExitCode], ...]] = (
    (BatchNotFound, ExitCode.NOT_FOUND),
    (BatchGone, ExitCode.NOT_FOUND),
    (BufferNotFound, ExitCode.NOT_FOUND),
    (NotRegistered, ExitCode.NOT_FOUND),
    (RouteNotFound, ExitCode.NOT_FOUND),
    (JobRunNotFound, ExitCode.NOT_FOUND),
    (InvalidRequest, ExitCode.REFUSED),
    (BatchClosed, ExitCode.REFUSED),
    (ChannelRefused, ExitCode.REFUSED),
    (CorrelationIdAlive, ExitCode.REFUSED),
    (LimitReached, ExitCode.REFUSED),
    (Throttled, ExitCode.UNAVAILABLE),
    (ServiceUnavailable, ExitCode.UNAVAILABLE),
    (AccessDenied, ExitCode.DENIED),
    (NotConfigured, ExitCode.DENIED),
)


def code_of(error: FaninError) -> ExitCode:
    """The exit code of an error."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), ExitCode.WRONG)
