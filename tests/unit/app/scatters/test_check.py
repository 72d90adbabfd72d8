"""What a request to scatter may be: the edge is allowed, one past it is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fanin.app.scatters.check import check
from fanin.domain.scatter import Recipient, Scatter
from fanin.errors import InvalidRequest, RequestTooLarge

ONE = Recipient("car", "https://sqs/car")
TOPIC: dict[str, Any] = {"recipients": [], "topic": "t"}


def scatter(**options: Any) -> Scatter:
    return Scatter(**{"body": "x", "recipients": [ONE], **options})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"recipients": []},
        {"recipients": [ONE] * 100_000},
        {"recipients": [Recipient("", "q")]},
        {"recipients": [Recipient("é" * 256, "q" * 1_024)]},
        {**TOPIC, "topic": "t" * 128, "where": {"kind": "van"}},
        {**TOPIC, "where": {f"{n}".zfill(64): "v" * 256 for n in range(16)}},
        {"type": "t" * 256},
        {"attributes": {f"{n}": "x" for n in range(6)}},
        {"attributes": {"n" * 256: "v" * 256}},
        {"attributes": {"fanin": "x", "Fanin-item": "x", "my-fanin-item": "x"}},
        {"correlation_id": "c"},
        {"correlation_id": "c" * 128},
        {"timeout": 5},
        {"timeout": 86_400},
        {"max_retries": 0},
        {"max_retries": 10},
        {"quorum": 1},
        {"quorum": 100_000},
        {"quorum": 0.001},
        {"quorum": 0.999},
    ],
)
def test_a_request_within_all_limits_is_allowed(options: dict[str, Any]) -> None:
    check(scatter(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topic": "t"}, "a scatter goes to recipients or to a topic, not to both"),
        ({"where": {"kind": "van"}}, "where chooses among the registrations of a topic; name the topic"),
        ({**TOPIC, "where": {f"{n}": "v" for n in range(17)}}, "where may have at most 16 pairs"),
        ({**TOPIC, "where": {"n" * 65: "v"}}, "a key of where must be text of 1 to 64"),
        ({**TOPIC, "where": {"kind": "v" * 257}}, "where['kind'] must be text of 0 to 256"),
        ({"recipients": [Recipient("n" * 257, "q")]}, "a recipient's name must be text of 0 to 256"),
        ({"recipients": [Recipient("", "")]}, "a recipient's channel must be text of 1 to 1024"),
        (
            {"recipients": [ONE, Recipient("", "q" * 1_025)]},
            "a recipient's channel must be text of 1 to 1024",
        ),
        ({**TOPIC, "topic": ""}, "topic must be 1 to 128 letters, digits"),
        ({**TOPIC, "topic": "t" * 129}, "topic must be 1 to 128 letters, digits"),
        ({**TOPIC, "topic": "a/b"}, "topic must be 1 to 128 letters, digits"),
        ({"body": ""}, "body must be text, and not empty"),
        ({"body": None}, "body must be text, and not empty"),
        ({"body": b"x"}, "body must be text, and not empty"),
        ({"type": "t" * 257}, "type must be text of 0 to 256 characters"),
        ({"attributes": {"": "v"}}, "an attribute's name must be text of 1 to 256"),
        ({"attributes": {"n" * 257: "v"}}, "an attribute's name must be text of 1 to 256"),
        ({"attributes": {"week": ""}}, "attribute 'week' must be text of 1 to 256"),
        ({"attributes": {"week": "v" * 257}}, "attribute 'week' must be text of 1 to 256"),
        ({"attributes": {"week": 47}}, "attribute 'week' must be text of 1 to 256"),
        (
            {"attributes": {"fanin-mine": "x"}},
            "attribute 'fanin-mine' is reserved for fanin; use another name",
        ),
        ({"correlation_id": ""}, "correlation_id must be text of 1 to 128"),
        ({"correlation_id": "c" * 129}, "correlation_id must be text of 1 to 128"),
        ({"timeout": 4}, "timeout must be a whole number from 5 to 86400, not 4"),
        ({"timeout": 86_401}, "timeout must be a whole number from 5 to 86400, not 86401"),
        ({"timeout": 5.0}, "timeout must be a whole number from 5 to 86400, not 5.0"),
        ({"max_retries": -1}, "max_retries must be a whole number from 0 to 10, not -1"),
        ({"max_retries": 11}, "max_retries must be a whole number from 0 to 10, not 11"),
        ({"quorum": 0}, "quorum must be a whole number from 1 to 100000, not 0"),
        ({"quorum": 100_001}, "quorum must be a whole number from 1 to 100000, not 100001"),
        ({"quorum": True}, "quorum must be a whole number from 1 to 100000, not True"),
        ({"quorum": "0.5"}, "quorum must be a whole number from 1 to 100000, not '0.5'"),
        ({"quorum": 0.0}, "quorum 0.0"),
        ({"quorum": 1.0}, "give a number of replies as an integer"),
        ({"quorum": 2.0}, "give a number of replies as an integer"),
        ({"quorum": -0.5}, "quorum -0.5"),
        ({"quorum": float("nan")}, "quorum nan"),
        ({"quorum": float("inf")}, "quorum inf"),
    ],
)
def test_a_value_out_of_its_range_or_against_another_is_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(message)):
        check(scatter(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipients": [ONE] * 100_001}, "100001 recipients in one call; send at most 100000"),
        ({"attributes": {f"{n}": "x" for n in range(7)}}, "7 attributes in one call; send at most 6"),
    ],
)
def test_one_too_many_is_too_large(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestTooLarge, match=message):
        check(scatter(**options))


@pytest.mark.parametrize(
    ("character", "size"),
    [("x", 1), ('"', 2), ("\n", 2), ("é", 6), ("\u20ac", 6), ("😀", 12)],
)
def test_a_body_may_take_200_kilobytes_of_json_with_its_quotes_and_escapes(character: str, size: int) -> None:
    body = character * ((204_800 - 2) // size)
    rest = "x" * (204_800 - 2 - len(body) * size)

    check(scatter(body=body + rest))
    with pytest.raises(RequestTooLarge, match="the body is over 204800 bytes; send a claim check"):
        check(scatter(body=body + rest + "x"))
