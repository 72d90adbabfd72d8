"""The exit codes of the command line; scripts may rely on them."""

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
    FailureNotFound,
    FaninError,
    IdempotencyKeyReused,
    InvalidRequest,
    ItemDone,
    ItemHasChild,
    JobRunNotFound,
    KeyNotFound,
    LimitReached,
    MaxItemsReached,
    NotConfigured,
    NotRegistered,
    OutcomeUnknown,
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
    BROKEN_PIPE = 141


MEANINGS: Final = {
    ExitCode.OK: "success; with watch or --wait, the batch is complete",
    ExitCode.WRONG: "the batch ended in another state than complete, or something failed",
    ExitCode.USAGE: "the request is invalid: the command line, or what it names",
    ExitCode.NOT_FOUND: "not found, or removed since",
    ExitCode.REFUSED: "the service refused the request: closed, at its limit, or already used",
    ExitCode.UNAVAILABLE: "the service does not answer, or is throttling",
    ExitCode.DENIED: "access denied, or a setting is missing",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.BROKEN_PIPE: "whoever read the output has closed the pipe, as head does",
}

_BY_ERROR: Final[tuple[tuple[type[FaninError], ExitCode], ...]] = (
    (BatchNotFound, ExitCode.NOT_FOUND),
    (BatchGone, ExitCode.NOT_FOUND),
    (BufferNotFound, ExitCode.NOT_FOUND),
    (FailureNotFound, ExitCode.NOT_FOUND),
    (KeyNotFound, ExitCode.NOT_FOUND),
    (NotRegistered, ExitCode.NOT_FOUND),
    (RouteNotFound, ExitCode.NOT_FOUND),
    (JobRunNotFound, ExitCode.NOT_FOUND),
    (IdempotencyKeyReused, ExitCode.REFUSED),
    (ItemHasChild, ExitCode.REFUSED),
    (InvalidRequest, ExitCode.USAGE),  # whether the command line noticed it, or the service
    (BatchClosed, ExitCode.REFUSED),
    (ItemDone, ExitCode.REFUSED),
    (MaxItemsReached, ExitCode.REFUSED),
    (ChannelRefused, ExitCode.REFUSED),
    (CorrelationIdAlive, ExitCode.REFUSED),
    (LimitReached, ExitCode.REFUSED),
    (Throttled, ExitCode.UNAVAILABLE),
    (ServiceUnavailable, ExitCode.UNAVAILABLE),
    (OutcomeUnknown, ExitCode.UNAVAILABLE),
    (AccessDenied, ExitCode.DENIED),
    (NotConfigured, ExitCode.DENIED),
)


def code_of(error: FaninError) -> ExitCode:
    """The exit code for an error; ``WRONG`` for errors without a code of their own."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), ExitCode.WRONG)
