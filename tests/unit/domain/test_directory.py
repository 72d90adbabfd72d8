"""The form of the directory on the wire and in rows, and the senders of events."""

from __future__ import annotations

import pytest

from fanin import names
from fanin.domain.directory import GRACE, Left, Register, Registration, Registrations, change
from fanin.domain.routing import Policy, PutEvent, PutRoute, Route, Routes, Sent
from fanin.errors import InvalidRequest
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


def test_rows_and_events_have_these_words() -> None:
    assert [*Left] == ["deregistered", "lease over", "queue gone"]
    assert [*Policy] == ["all", "first", "sender"]


def test_a_lease_is_an_hour_unless_the_instance_says_otherwise() -> None:
    assert Register("cars", "a", "q1").lease == 60 * 60


def test_a_row_outlives_its_lease_by_a_day_so_that_its_end_is_reported() -> None:
    assert GRACE == 24 * 60 * 60
    assert ONE.expires_at == ONE.until // 1000 + GRACE
    assert ONE.leave(Left.DEREGISTERED, ONE.until).expires_at == ONE.until // 1000


def test_a_registration_lives_until_its_lease_is_over_or_it_leaves() -> None:
    assert ONE.lives(ONE.until - 1)
    assert not ONE.lives(ONE.until)
    assert not ONE.leave(Left.QUEUE_GONE, ONE.until).lives(ONE.until - 1)


def test_a_registration_is_chosen_if_it_has_every_attribute_that_is_asked_for() -> None:
    assert ONE.has({})
    assert ONE.has({"colour": "red"})
    assert not ONE.has({"colour": "red", "size": "big"})
    assert not ONE.has({"colour": "blue"})


def test_a_registration_moves_with_its_channel_or_its_attributes() -> None:
    assert not ONE.moved("q1", {"colour": "red"})
    assert ONE.moved("q2", {"colour": "red"})
    assert ONE.moved("q1", {})
