"""Who of a topic gets an event, and in which order queues are tried."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fanin.domain.directory import Registration
from fanin.domain.routing import Policy, choose


def registration(name: str) -> Registration:
    return Registration("desk", name, f"https://sqs/{name}", {}, 60, 0, 1)


TOPIC = [registration(name) for name in "abc"]


def chosen(policy: Policy, detail: dict[str, object]) -> list[str]:
    return [one.name for one in choose(policy, iter(TOPIC), detail)]


@pytest.mark.parametrize("policy", [Policy.ALL, Policy.FIRST])
def test_all_and_first_go_by_name_whatever_the_event_says(policy: Policy) -> None:
    assert chosen(policy, {"sender": "c", "reply_to": "https://sqs/b"}) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("detail", "names"),
    [
        ({"sender": "b"}, ["b", "a", "c"]),
        ({"reply_to": "https://sqs/c"}, ["c", "a", "b"]),
        ({"reply_to": "https://sqs/c", "sender": "b"}, ["b", "c", "a"]),
        ({"sender": "nobody"}, ["a", "b", "c"]),
        ({}, ["a", "b", "c"]),
        ({"sender": 7, "reply_to": None}, ["a", "b", "c"]),
    ],
)
def test_the_sender_comes_first_and_the_others_stand_in(detail: dict[str, object], names: list[str]) -> None:
    assert chosen(Policy.SENDER, detail) == names


def test_no_more_of_a_topic_is_read_than_is_needed() -> None:
    read: list[str] = []

    def topic() -> Iterator[Registration]:
        for one in TOPIC:
            read.append(one.name)
            yield one

    assert next(iter(choose(Policy.FIRST, topic(), {}))).name == "a"
    assert read == ["a"]
