"""Exit codes are stable, and each has a meaning."""

from __future__ import annotations

import pytest

from fanin.cli.exits import MEANINGS, ExitCode, code_of
from fanin.errors import (
    AccessDenied,
    BatchGone,
    BatchNotFound,
    FaninError,
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
        (RequestTooLarge, 4),
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


def test_every_exit_code_has_a_meaning():
    assert set(MEANINGS) == set(ExitCode)
