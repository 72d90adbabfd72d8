"""Rules of routes in memory: they match as EventBridge's do, and refuse what is not known here."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.adapters.memory import Memory
from fanin.errors import InvalidRequest


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


@pytest.mark.parametrize("pattern", [{"detail": {"n": [7], "m": 1}}, {"source": ["x"], "detail": []}])
def test_a_pattern_is_checked_to_its_end_even_where_the_event_does_not_match(pattern: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Memory().rules.matches(pattern, {"source": "other"})


@pytest.mark.parametrize(
    ("choice", "matches"),
    [({"exists": False}, True), ({"exists": True}, False), ({"prefix": ""}, False)],
)
def test_what_an_event_lacks_does_not_exist(choice: Any, *, matches: bool) -> None:
    assert Memory().rules.matches({"detail": {"m": [choice]}}, {"detail": "text"}) is matches


def test_a_route_has_one_rule_and_loses_it_once() -> None:
    memory = Memory()

    memory.rules.put("orders", {"source": ["shop"]})
    memory.rules.put("orders", {"source": ["store"]})
    assert memory.rules.patterns == {"orders": {"source": ["store"]}}

    memory.rules.delete("orders")
    memory.rules.delete("orders")
    assert memory.rules.patterns == {}
    assert memory.accesses.sends == {"rules.put": 2, "rules.delete": 2}


def test_a_refused_pattern_leaves_the_rule_that_is_there() -> None:
    memory = Memory()
    memory.rules.put("orders", {"source": ["shop"]})

    with pytest.raises(InvalidRequest):
        memory.rules.put("orders", {"source": []})

    assert memory.rules.patterns == {"orders": {"source": ["shop"]}}


def test_every_field_of_a_pattern_must_match() -> None:
    rules, pattern = Memory().rules, {"source": ["shop"], "detail-type": ["sold"]}

    assert rules.matches(pattern, {"source": "shop", "detail-type": "sold"})
    assert not rules.matches(pattern, {"source": "shop"})
