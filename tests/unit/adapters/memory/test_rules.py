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


def test_a_refused_pattern_leaves_the_rule_that_is_there() -> None:
    memory = Memory()
    memory.rules.put("orders", {"source": ["shop"]})

    with pytest.raises(InvalidRequest):
        memory.rules.put("orders", {"source": []})

    assert memory.rules.patterns == {"orders": {"source": ["shop"]}}
