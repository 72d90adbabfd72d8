"""The form of the directory on the wire and in rows, and the senders of events."""

from __future__ import annotations

import pytest

from fanin import names
from fanin.domain.directory import Left, Register, Registration, Registrations, change, check_channel
from fanin.domain.routing import Policy, PutEvent, PutRoute, Route, Routes, Sent
from fanin.errors import ChannelRefused, InvalidRequest
from fanin.wire import directory as wire

ONE = Registration("cars", "a", "q1", {"colour": "red"}, 60, 1_790_000_000_123, 1_790_000_061_000)
ROUTE = Route("orders", {"source": ["shop"]}, "desk", Policy.FIRST, {"size": "big"}, 1_790_000_000_123)


@pytest.mark.parametrize("registration", [ONE, ONE.leave(Left.QUEUE_GONE, 1_790_000_030_000)])
def test_a_registration_survives_its_row_and_the_wire(registration: Registration) -> None:
    row = Registration.of("cars", "a", registration.value, registration.expires_at)
    assert row == registration
    assert wire.REGISTRATION.decode(wire.REGISTRATION.encode(registration)) == registration


def test_what_is_asked_for_survives_the_wire() -> None:
    register = Register("cars", "a", "q1", {"colour": "red"}, 60)
    route = PutRoute("orders", {"source": ["shop"]}, "desk", Policy.SENDER, {"size": "big"})
    event = PutEvent("shop", "Placed", {"n": 7})
    assert wire.REGISTER.decode(wire.REGISTER.encode(register), topic="cars", name="a") == register
    assert wire.PUT_ROUTE.decode(wire.PUT_ROUTE.encode(route), name="orders") == route
    assert wire.PUT_EVENT.decode(wire.PUT_EVENT.encode(event)) == event


def test_what_is_left_out_takes_its_default() -> None:
    assert wire.REGISTER.decode({"channel": "q1"}, topic="cars", name="a") == Register("cars", "a", "q1")
    route = wire.PUT_ROUTE.decode({"pattern": {}, "topic": "desk"}, name="orders")
    assert route == PutRoute("orders", {}, "desk")


def test_answers_survive_the_wire() -> None:
    for page in (Registrations((ONE,), "next"), Registrations(())):
        assert wire.REGISTRATIONS.decode(wire.REGISTRATIONS.encode(page)) == page
    routes, sent = Routes((ROUTE,), "next"), Sent("e-1", "c-1")
    assert wire.ROUTES.decode(wire.ROUTES.encode(routes)) == routes
    assert wire.SENT.decode(wire.SENT.encode(sent)) == sent


def test_an_attribute_filter_is_pairs() -> None:
    wanted = {"colour": "red", "region": "eu=west"}
    assert wire.decode_attributes(wire.encode_attributes(wanted)) == wanted
    assert wire.encode_attributes({}) is None
    assert wire.decode_attributes(None) == {}
    for bad in ("red", "=red", "colour=red,blue"):
        with pytest.raises(InvalidRequest):
            wire.decode_attributes(bad)


def test_a_change_is_told_as_what_it_is() -> None:
    gone = ONE.leave(Left.DEREGISTERED, 1_790_000_030_000)
    beat = Registration("cars", "a", "q1", {"colour": "red"}, 90, ONE.since, ONE.until + 30_000)
    moved = Registration("cars", "a", "q2", {"colour": "red"}, 60, ONE.since, ONE.until)
    over = ONE.leave(Left.LEASE_OVER, ONE.until)
    assert change(None, ONE) == (names.INSTANCE_REGISTERED, ONE)
    assert change(gone, ONE) == (names.INSTANCE_REGISTERED, ONE)
    assert change(ONE, beat) is None
    assert change(ONE, moved) == (names.INSTANCE_MOVED, moved)
    assert change(ONE, gone) == (names.INSTANCE_DEREGISTERED, gone)
    assert change(ONE, None) == (names.INSTANCE_DEREGISTERED, over)
    assert change(gone, None) is None
    assert change(gone, gone) is None


def test_a_fifo_queue_is_no_channel() -> None:
    check_channel("https://sqs/fifo")
    for channel in ("https://sqs/q.fifo", "arn:aws:sqs:eu-west-1:123456789012:q.fifo"):
        with pytest.raises(ChannelRefused, match="use a standard queue"):
            check_channel(channel)
