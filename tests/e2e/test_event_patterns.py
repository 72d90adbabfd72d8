"""Event patterns, judged here and by the bus: both say the same of patterns and events made by chance."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from fanin.domain import patterns

pytestmark = pytest.mark.emulator

CASES = 200
NAMES = ("a", "b", "c")
TEXTS = ("", "shop", "Shop", "shopping", "a/b/c.png", "a*c", "10.0.0.7", "10.0.1.7", "7")
VALUES = (*TEXTS, 0, 7, 7.5, -3, True, False, None)
ENVELOPE = {
    "id": "1",
    "account": "000000000000",
    "source": "shop",
    "time": "2026-01-01T00:00:00Z",
    "region": "eu-west-1",
    "resources": [],
    "detail-type": "Placed",
}


def value(random: Random, depth: int = 0) -> Any:
    kind = random.random()
    if depth < 3 and kind < 0.2:
        return [value(random, depth + 1) for _ in range(random.randrange(3))]
    if depth < 3 and kind < 0.35:
        return detail(random, depth + 1)
    return random.choice(VALUES)


def detail(random: Random, depth: int = 0) -> dict[str, Any]:
    return {name: value(random, depth) for name in NAMES if random.random() < 0.7}


def text(random: Random) -> str:
    return random.choice([one for one in TEXTS if one])


def choice(random: Random) -> Any:
    some = [text(random) for _ in range(random.randrange(1, 3))]
    operators: list[Any] = [
        random.choice(VALUES),
        {"prefix": text(random)[:2]},
        {"prefix": {"equals-ignore-case": text(random)[:3]}},
        {"suffix": text(random)[-2:]},
        {"equals-ignore-case": text(random).swapcase()},
        {"exists": random.random() < 0.5},
        {"numeric": [random.choice(["=", "<", "<=", ">", ">="]), random.choice([0, 7, 7.5])]},
        {"numeric": [">", -5, "<=", random.choice([0, 7])]},
        {"cidr": random.choice(["10.0.0.0/24", "10.0.0.0/16", "192.168.0.0/24"])},
        {"wildcard": random.choice(["*", "s*p", "*/b/*", "*.png", r"a\*c", "a*", "*o*i*"])},
        {"anything-but": random.choice([text(random), some, 7, [0, 7]])},
        {"anything-but": {"prefix": text(random)[:2]}},
        {"anything-but": {"suffix": some}},
        {"anything-but": {"equals-ignore-case": text(random)}},
        {"anything-but": {"wildcard": "s*p"}},
    ]
    return random.choice(operators)


def fields(random: Random, depth: int = 0) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in random.sample(NAMES, random.randrange(1, 3)):
        deeper = depth < 2 and random.random() < 0.3
        made[name] = (
            fields(random, depth + 1) if deeper else [choice(random) for _ in range(random.randrange(1, 3))]
        )
    if depth < 2 and random.random() < 0.25:
        either = [fields(random, depth + 1) for _ in range(2)]
        made = {"$or": either, **made} if random.random() < 0.5 else {**made, "$or": either}
    return made


def test_patterns_match_as_the_bus_says(stack) -> None:
    # Given patterns and events by chance
    random = Random(20261125)  # noqa: S311
    client = stack.client("events")
    seen = {True: 0, False: 0}
    for number in range(CASES):
        pattern = {"detail": fields(random)}
        event = {**ENVELOPE, "detail": detail(random)}
        # When both are asked
        patterns.check(pattern)
        here = patterns.matches(pattern, event)
        there = client.test_event_pattern(EventPattern=json.dumps(pattern), Event=json.dumps(event))["Result"]
        # Then they agree
        assert here is there, (number, pattern, event)
        seen[there] += 1
    assert min(seen.values()) > CASES // 20
