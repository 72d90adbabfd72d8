"""Exit codes are stable, and each has a meaning."""

import pytest

from fanin.cli.exits import ExitCode, code_of
from fanin.errors import (
    AccessDenied,
    BatchGone,
    BatchNotFound,
    FaninError,
    IdempotencyKeyReused,
    LimitReached,
    NotConfigured,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BatchNotFound, 3),
        (BatchGone, 3),
        (RequestTooLarge, 2),
        (IdempotencyKeyReused, 4),
        (LimitReached, 4),
        (Throttled, 5),
        (ServiceUnavailable, 5),
        (AccessDenied, 6),
        (NotConfigured, 6),
        (FaninError, 1),
    ],
)
def test_exit_codes_are_stable(error, code):
    assert code_of(error("x")) == code


def test_every_error_that_callers_can_act_on_has_a_code_of_its_own():
    # Given all errors, and those that are neither the caller's fault nor a state of the service
    unmapped = {kind for kind in kinds(FaninError) if code_of_kind(kind) is ExitCode.WRONG}
    assert {kind.__name__ for kind in unmapped} == {
        "BufferFull",
        "ExportDamaged",
        "FaninError",
        "ItemFailed",
        "LocalStackFailed",
        "PartlyMarked",
        "Unreachable",
        "SendFailed",
        "TargetRefused",
        "TooManyRejects",
    }


def kinds(kind):
    return {kind}.union(
        *(kinds(child) for child in kind.__subclasses__() if child.__module__ == "fanin.errors")
    )


def code_of_kind(kind):
    return code_of(kind.__new__(kind))
