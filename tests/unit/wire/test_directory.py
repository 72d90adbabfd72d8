"""The directory on the wire: attribute filters, and names that come from the path."""

from __future__ import annotations

import pytest

from fanin.domain.directory import Left, Register, Registration
from fanin.domain.routing import Policy, PutRoute
from fanin.errors import InvalidRequest
from fanin.wire.directory import PUT_ROUTE, REGISTER, REGISTRATION, decode_attributes, encode_attributes


def test_names_come_from_the_path() -> None:
    wanted = Register("cars", "car-1", "https://sqs/q", {"colour": "red"}, 60)
    body = REGISTER.encode(wanted)
    assert body == {"channel": "https://sqs/q", "attributes": {"colour": "red"}, "lease": 60}
    assert REGISTER.decode(body, topic="cars", name="car-1") == wanted
    assert REGISTER.decode({"channel": "q", "lease": None}, topic="t", name="n") == Register("t", "n", "q")
    route = PutRoute("orders", {"source": ["shop"]}, "desk", Policy.FIRST)
    assert PUT_ROUTE.decode(PUT_ROUTE.encode(route), name="orders") == route


def test_why_a_registration_ended_is_told_only_when_it_has() -> None:
    alive = Registration("cars", "car-1", "q", {}, 60, 0, 60_000)
    assert "reason" not in REGISTRATION.encode(alive)
    assert REGISTRATION.encode(alive.leave(Left.QUEUE_GONE, 5))["reason"] == "queue gone"


def test_an_attribute_filter_is_one_query_parameter() -> None:
    assert encode_attributes({}) is None
    assert encode_attributes({"colour": "red", "region": "eu"}) == "colour=red,region=eu"
    assert decode_attributes("colour=red,region=eu") == {"colour": "red", "region": "eu"}
    assert decode_attributes(None) == {}
    with pytest.raises(InvalidRequest, match="name=value"):
        decode_attributes("colour")
