"""Rules of routes in memory: they match as EventBridge's do, and refuse what is not known here."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.adapters.memory import Memory
from fanin.errors import InvalidRequest


@pytest.mark.parametrize(
    "pattern", [{}, {"source": "shop"}, {"source": []}, {"detail": {"n": [{"soundex": "x"}]}}]
)
def test_the_memory_refuses_what_it_does_not_know(pattern: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Memory().rules.put("orders", pattern)


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


def test_an_event_matches_the_rules_of_several_routes() -> None:
    rules = Memory().rules
    rules.put("shop", {"source": ["shop"]})
    rules.put("sales", {"source": ["shop"], "detail-type": ["sold"]})
    rules.put("large", {"detail": {"n": [{"numeric": [">", 100]}]}})

    assert rules.matching({"source": "shop", "detail-type": "sold"}) == ["shop", "sales"]
    assert rules.matching({"source": "shop", "detail": {"n": 101}}) == ["shop", "large"]
