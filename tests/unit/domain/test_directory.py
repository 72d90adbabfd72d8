"""The form of registrations in rows, and what is told of their changes."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin import names
from fanin.domain import limits
from fanin.domain.directory import (
    GRACE,
    Left,
    Policy,
    Register,
    Registration,
    change,
    check_channel,
    check_name,
    choose,
    is_fifo,
)
from fanin.errors import ChannelRefused, InvalidRequest
from fanin.names import ROUTE_RULE

ONE = Registration("cars", "a", "q1", {"colour": "red"}, 60, 1_790_000_000_123, 1_790_000_061_000)


@pytest.mark.parametrize("registration", [ONE, ONE.leave(Left.QUEUE_GONE, 1_790_000_030_000)])
def test_a_registration_survives_its_row(registration):
    assert Registration.of("cars", "a", registration.value, registration.expires_at) == registration


def test_a_change_is_told_as_what_it_is():
    gone = ONE.leave(Left.DEREGISTERED, 1_790_000_030_000)
    beat = Registration("cars", "a", "q1", {"colour": "red"}, 90, ONE.since, ONE.until + 30_000)
    moved = Registration("cars", "a", "q2", {"colour": "red"}, 60, ONE.since, ONE.until)
    painted = Registration("cars", "a", "q1", {}, 60, ONE.since, ONE.until)
    over = ONE.leave(Left.LEASE_OVER, ONE.until)
    assert change(None, ONE) == (names.INSTANCE_REGISTERED, ONE)
    assert change(gone, ONE) == (names.INSTANCE_REGISTERED, ONE)
    assert change(ONE, beat) is None
    assert change(ONE, moved) == (names.INSTANCE_MOVED, moved)
    assert change(ONE, painted) == (names.INSTANCE_MOVED, painted)
    assert change(ONE, gone) == (names.INSTANCE_DEREGISTERED, gone)
    assert change(ONE, None) == (names.INSTANCE_DEREGISTERED, over)
    assert change(gone, None) is None
    assert change(gone, gone) is None


def test_rows_and_events_have_these_words():
    assert [*Left] == ["deregistered", "lease over", "queue gone"]
    assert [*Policy] == ["all", "first", "sender"]


def test_a_lease_is_an_hour_unless_the_instance_says_otherwise():
    assert Register("cars", "a", "q1").lease == 60 * 60


def test_a_row_outlives_its_lease_by_a_day_so_that_its_end_is_reported():
    assert GRACE == 24 * 60 * 60
    assert ONE.expires_at == ONE.until // 1000 + GRACE
    assert ONE.leave(Left.DEREGISTERED, ONE.until).expires_at == ONE.until // 1000


def test_a_registration_lives_until_its_lease_is_over_or_it_leaves():
    assert ONE.lives(ONE.until - 1)
    assert not ONE.lives(ONE.until)
    assert not ONE.leave(Left.QUEUE_GONE, ONE.until).lives(ONE.until - 1)


def test_a_registration_is_chosen_if_it_has_every_attribute_that_is_asked_for():
    assert ONE.has({})
    assert ONE.has({"colour": "red"})
    assert not ONE.has({"colour": "red", "size": "big"})
    assert not ONE.has({"colour": "blue"})


URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/work"


def test_a_fifo_queue_is_no_channel():
    check_channel("https://sqs/fifo")
    for channel in ("https://sqs/q.fifo", "arn:aws:sqs:eu-west-1:123456789012:q.fifo"):
        with pytest.raises(ChannelRefused, match="use a standard queue"):
            check_channel(channel)


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        (URL, False),
        (f"{URL}.fifo", True),
        ("arn:aws:sqs:eu-west-1:123456789012:work.fifo", True),
        (f"{URL}.fifo.dead", False),
    ],
)
def test_a_fifo_queue_is_known_by_its_name(queue, expected):
    assert is_fifo(queue) is expected


def registered(name: str) -> Registration:
    return Registration("cars", name, f"https://sqs/{name}", {}, 60, 0, 60_000)


CARS = [registered(name) for name in "abcd"]
PLACES = [None, *(one.name for one in CARS), *(one.channel for one in CARS), "https://sqs/other"]


def tried(policy: Policy, detail: dict[str, Any]) -> str:
    return "".join(one.name for one in choose(policy, CARS, detail))


@pytest.mark.parametrize("policy", [Policy.ALL, Policy.FIRST])
def test_all_and_first_are_tried_by_name_whoever_sent_the_event(policy):
    assert tried(policy, {"reply_to": "https://sqs/c", "sender": "d"}) == "abcd"


@pytest.mark.parametrize("policy", [Policy.ALL, Policy.FIRST])
def test_a_topic_is_read_no_further_than_it_is_needed(policy):
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
def test_the_sender_is_tried_first_and_then_the_others_by_name(detail, order):
    assert tried(Policy.SENDER, detail) == order


@given(
    cars=st.lists(st.sampled_from(CARS), unique_by=lambda one: one.name),
    reply_to=st.sampled_from(PLACES),
    sender=st.sampled_from(PLACES),
)
def test_whom_the_event_names_comes_before_all_others_and_nobody_is_lost(cars, reply_to, sender):
    chosen = list(choose(Policy.SENDER, cars, {"reply_to": reply_to, "sender": sender}))

    named = [one for one in cars if {one.name, one.channel} & {reply_to, sender}]
    assert chosen == named + [one for one in cars if one not in named]


@pytest.mark.parametrize("name", ["a", "7", "a.b-c_D", "x" * limits.MAX_ROUTE])
def test_a_name_of_a_route_makes_a_name_that_eventbridge_accepts_for_its_rule(name):
    check_name(name)
    assert re.fullmatch(r"[\.\-_A-Za-z0-9]{1,64}", ROUTE_RULE + name)


@pytest.mark.parametrize("name", ["", "a:b", ".a", "a b", "a\n", "é", "x" * (limits.MAX_ROUTE + 1)])
def test_another_name_is_refused(name):
    with pytest.raises(InvalidRequest, match="route must be"):
        check_name(name)
