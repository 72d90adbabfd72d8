"""What a request to scatter may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fanin.app.scatters.check import check
from fanin.domain import limits
from fanin.domain.scatter import Recipient, Scatter
from fanin.errors import InvalidRequest, RequestTooLarge
from tests.unit.app.scatters.conftest import Fleet


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"body": ""}, InvalidRequest),
        ({"body": "é" * 40_000}, RequestTooLarge),
        ({"topic": "t", "recipients": [Recipient("", "q")]}, InvalidRequest),
        ({"where": {"a": "b"}}, InvalidRequest),
        ({"timeout": 4}, InvalidRequest),
        ({"max_retries": 11}, InvalidRequest),
        ({"quorum": 0}, InvalidRequest),
        ({"quorum": 1.0}, InvalidRequest),
        ({"attributes": {"fanin-item": "x"}}, InvalidRequest),
        ({"attributes": {str(i): "x" for i in range(7)}}, RequestTooLarge),
        ({"correlation_id": ""}, InvalidRequest),
    ],
)
def test_a_bad_request_writes_nothing(
    fleet: Fleet, options: Mapping[str, Any], error: type[Exception]
) -> None:
    before = fleet.accesses.writes.total()

    with pytest.raises(error):
        fleet.scatters.start(Scatter(**{"body": "x", **options}))
    assert fleet.accesses.writes.total() == before


@pytest.mark.parametrize(
    "options",
    [
        {"recipients": [Recipient("", "q")] * limits.MAX_RECIPIENTS},
        {"topic": "t" * limits.MAX_NAME, "where": {"a": "b"}},
        {"body": "x" * (limits.MAX_REPLY - 2)},  # as JSON it has two quotes
        {"timeout": limits.MIN_TIMEOUT, "max_retries": 0},
        {"timeout": limits.MAX_TIMEOUT, "max_retries": limits.MAX_RETRIES},
        {"quorum": 1},
        {"quorum": limits.MAX_RECIPIENTS},
        {"quorum": 0.001},
        {"quorum": 0.999},
        {"attributes": {str(i): "x" for i in range(limits.MAX_ATTRIBUTES)}},
        {"correlation_id": "c" * limits.MAX_IDEMPOTENCY_KEY},
    ],
)
def test_the_extremes_are_taken(options: Mapping[str, Any]) -> None:
    check(Scatter(**{"body": "x", **options}))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"recipients": [Recipient("", "q")] * (limits.MAX_RECIPIENTS + 1)}, RequestTooLarge, "100001"),
        ({"recipients": [Recipient("", "")]}, InvalidRequest, "a recipient's channel"),
        ({"recipients": [Recipient("n" * 257, "q")]}, InvalidRequest, "a recipient's name"),
        ({"topic": "a/b"}, InvalidRequest, "topic"),
        ({"body": "x" * (limits.MAX_REPLY - 1)}, RequestTooLarge, "claim check"),
        ({"body": 5}, InvalidRequest, "body must be text"),
        ({"timeout": limits.MAX_TIMEOUT + 1}, InvalidRequest, "timeout"),
        ({"timeout": 10.5}, InvalidRequest, "timeout"),
        ({"max_retries": -1}, InvalidRequest, "max_retries"),
        ({"quorum": 0.0}, InvalidRequest, "not a share between 0 and 1"),
        ({"quorum": limits.MAX_RECIPIENTS + 1}, InvalidRequest, "quorum"),
        ({"quorum": True}, InvalidRequest, "quorum"),
        ({"attributes": {"": "x"}}, InvalidRequest, "an attribute's name"),
        ({"attributes": {"a": ""}}, InvalidRequest, "attribute 'a'"),
        ({"attributes": {"fanin-item": "x"}}, InvalidRequest, "use another name"),
        ({"type": "t" * 257}, InvalidRequest, "type"),
        ({"correlation_id": "c" * 129}, InvalidRequest, "correlation_id"),
    ],
    ids=str,
)
def test_one_more_is_refused_with_its_name(
    options: Mapping[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        check(Scatter(**{"body": "x", **options}))
