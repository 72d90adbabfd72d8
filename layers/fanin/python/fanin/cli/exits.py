"""The exit codes of the command line; scripts may rely on them."""

from enum import IntEnum
from typing import Final

from fanin.errors import STATUS, ChannelRefused, FaninError, JobRunNotFound, NotConfigured, OutcomeUnknown


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

_BY_STATUS: Final = {
    400: ExitCode.USAGE,  # whether the command line noticed it, or the service
    403: ExitCode.DENIED,
    404: ExitCode.NOT_FOUND,
    409: ExitCode.REFUSED,
    410: ExitCode.NOT_FOUND,
    413: ExitCode.USAGE,
    415: ExitCode.USAGE,
    429: ExitCode.REFUSED,
    503: ExitCode.UNAVAILABLE,
}
_OTHERS: Final[dict[type[FaninError], ExitCode]] = {
    ChannelRefused: ExitCode.REFUSED,
    JobRunNotFound: ExitCode.NOT_FOUND,
    NotConfigured: ExitCode.DENIED,
    OutcomeUnknown: ExitCode.UNAVAILABLE,
}
"""Errors that the HTTP API does not have, and those after which a script does something else."""


def code_of(error: FaninError) -> ExitCode:
    """The exit code for an error, which its HTTP status tells; ``WRONG`` for errors without one."""
    for kind in type(error).__mro__:
        if kind in _OTHERS or kind in STATUS:
            return _OTHERS.get(kind) or _BY_STATUS[STATUS[kind]]
    return ExitCode.WRONG
