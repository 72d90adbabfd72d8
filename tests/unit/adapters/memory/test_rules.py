"""Rules in memory: the basic part of the pattern language."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from fanin.adapters.memory import Memory
from fanin.adapters.rules import EventBridgeRules
from fanin.errors import InvalidRequest

ROUTER = "arn:aws:lambda:eu-west-1:000000000000:function:router"


@pytest.fixture
def client() -> Any:
    return boto3.client("events")


@pytest.fixture
def rules(client: Any) -> EventBridgeRules:
    return EventBridgeRules(lambda: "bus", lambda: ROUTER, lambda: client)


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ({"source": ["shop"]}, True),
        ({"source": ["other", "shop"]}, True),
        ({"source": ["other"]}, False),
        ({"detail": {"n": [7]}}, True),
        ({"detail": {"n": [7], "m": [1]}}, False),
        ({"detail": {"tags": ["a"]}}, True),
        ({"detail": {"m": [{"exists": False}]}}, True),
        ({"detail": {"n": [{"exists": True}]}}, True),
        ({"source": [{"prefix": "sh"}]}, True),
        ({"source": [{"prefix": "x"}]}, False),
        ({"source": [{"anything-but": "shop"}]}, False),
        ({"source": [{"anything-but": ["a", "b"]}]}, True),
        ({"detail": {"m": [{"anything-but": "a"}]}}, False),
    ],
)
def test_the_memory_knows_the_plain_part_of_the_language(pattern: dict[str, Any], *, matches: bool) -> None:
    event = {"source": "shop", "detail": {"n": 7, "tags": ["a", "b"]}}
    assert Memory().rules.matches(pattern, event) is matches


@pytest.mark.parametrize(
    "pattern", [{}, {"source": "shop"}, {"source": []}, {"detail": {"n": [{"numeric": [">", 1]}]}}]
)
def test_the_memory_refuses_what_it_does_not_know(pattern: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Memory().rules.put("orders", pattern)
