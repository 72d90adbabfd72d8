"""Routing: who gets an event, in which order, and how far the topic is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain import limits
from fanin.domain.directory import Policy, Registration, check_name, choose
from fanin.errors import InvalidRequest
from fanin.names import ROUTE_RULE


def registered(name: str) -> Registration:
    return Registration("cars", name, f"https://sqs/{name}", {}, 60, 0, 60_000)


CARS = [registered(name) for name in "abcd"]
PLACES = [None, *(one.name for one in CARS), *(one.channel for one in CARS), "https://sqs/other"]


def names(policy: Policy, detail: dict[str, Any]) -> str:
    return "".join(one.name for one in choose(policy, CARS, detail))


@pytest.mark.parametrize("policy", [Policy.ALL, Policy.FIRST])
def test_all_and_first_are_tried_by_name_whoever_sent_the_event(policy: Policy) -> None:
    assert names(policy, {"reply_to": "https://sqs/c", "sender": "d"}) == "abcd"


@pytest.mark.parametrize("policy", [Policy.ALL, Policy.FIRST])
def test_a_topic_is_read_no_further_than_it_is_needed(policy: Policy) -> None:
    read: list[str] = []

    def topic() -> Iterator[Registration]:
        for one in CARS:
            read.append(one.name)
            yield one

    first = next(iter(choose(policy, topic(), {})))

    assert (first, read) == (CARS[0], ["a"])


@pytest.mark.parametrize(
    ("detail", "order"),
    [
        ({"reply_to": "https://sqs/d", "sender": "b"}, "bdac"),
        ({"reply_to": "https://sqs/other", "sender": "b"}, "bacd"),
        ({"reply_to": ["c"], "sender": {"name": "c"}}, "abcd"),
        ({"channel": "c"}, "abcd"),
        ({}, "abcd"),
    ],
)
def test_the_sender_is_tried_first_and_then_the_others_by_name(detail: dict[str, Any], order: str) -> None:
    assert names(Policy.SENDER, detail) == order


@given(
    cars=st.lists(st.sampled_from(CARS), unique_by=lambda one: one.name),
    reply_to=st.sampled_from(PLACES),
    sender=st.sampled_from(PLACES),
)
def test_whom_the_event_names_comes_before_all_others_and_nobody_is_lost(
    cars: list[Registration], reply_to: str | None, sender: str | None
) -> None:
    chosen = list(choose(Policy.SENDER, cars, {"reply_to": reply_to, "sender": sender}))

    named = [one for one in cars if {one.name, one.channel} & {reply_to, sender}]
    assert chosen == named + [one for one in cars if one not in named]


@pytest.mark.parametrize("name", ["a", "7", "a.b-c_D", "x" * limits.MAX_ROUTE])
def test_a_name_of_a_route_makes_a_name_that_eventbridge_accepts_for_its_rule(name: str) -> None:
    check_name(name)
    assert re.fullmatch(r"[\.\-_A-Za-z0-9]{1,64}", ROUTE_RULE + name)


@pytest.mark.parametrize("name", ["", "a:b", ".a", "a b", "a\n", "é", "x" * (limits.MAX_ROUTE + 1)])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="route must be"):
        check_name(name)
