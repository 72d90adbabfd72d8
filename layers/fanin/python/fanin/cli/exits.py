"""The exit codes of the command line; scripts may rely on them."""

from enum import IntEnum
from typing import Final, Self

from fanin.errors import ChannelRefused, FaninError, JobRunNotFound, NotConfigured, OutcomeUnknown


class ExitCode(IntEnum):
    """An exit code, and its ``meaning`` in the help."""

    meaning: str

    OK = 0, "success; with watch or --wait, the batch is complete"
    WRONG = 1, "the batch ended in another state than complete, or something failed"
    USAGE = 2, "the request is invalid: the command line, or what it names"
    NOT_FOUND = 3, "not found, or removed since"
    REFUSED = 4, "the service refused the request: closed, at its limit, or already used"
    UNAVAILABLE = 5, "the service does not answer, or is throttling"
    DENIED = 6, "access denied, or a setting is missing"
    INTERRUPTED = 130, "interrupted by Ctrl-C"
    BROKEN_PIPE = 141, "whoever read the output has closed the pipe, as head does"

    def __new__(cls, code: int, meaning: str) -> Self:
        made = int.__new__(cls, code)
        made._value_, made.meaning = code, meaning
        return made


_BY_STATUS: Final[dict[int | None, ExitCode]] = {
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
    return _OTHERS.get(type(error)) or _BY_STATUS.get(error.status, ExitCode.WRONG)
