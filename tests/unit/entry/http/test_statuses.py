"""Which errors reach callers, and with which status."""

from __future__ import annotations

from http import HTTPStatus

from fanin import errors
from fanin.entry.http.statuses import STATUS


def test_statuses_are_those_of_refusals() -> None:
    assert all(400 <= status < 600 and HTTPStatus(status).phrase for status in STATUS.values())


def test_a_fault_of_the_service_is_one_that_passes() -> None:
    """5xx tells a client to repeat the call, so every such error must be retryable."""
    faults = {error for error, status in STATUS.items() if status >= 500}
    assert faults == {errors.Throttled, errors.ServiceUnavailable}
    assert all(error.retryable for error in faults)


def test_a_refusal_that_passes_says_so_by_its_status() -> None:
    retryable = {error: status for error, status in STATUS.items() if error.retryable}
    assert set(retryable.values()) <= {429, 503}
    assert retryable[errors.LimitReached] == 429


def test_an_error_and_its_parent_are_of_one_kind() -> None:
    """A client that knows only the parent, by its status, still does the right thing."""
    for error, status in STATUS.items():
        parents = [parent for parent in error.__mro__[1:] if parent in STATUS]
        assert all(STATUS[parent] // 100 == status // 100 for parent in parents)
