"""The directory on the wire: attribute filters, and names that come from the path."""

import pytest

from fanin.domain.directory import Left, Policy, PutRoute, Register, Registration
from fanin.errors import InvalidRequest
from fanin.wire.patterns import PUT_ROUTE, REGISTER, REGISTRATION, decode_attributes, encode_attributes

ALIVE = Registration("cars", "car-1", "q", {"colour": "red"}, 60, 0, 60_000)


def test_names_come_from_the_path_and_what_is_left_out_takes_its_default():
    wanted = Register("cars", "car-1", "https://sqs/q", {"colour": "red"}, 60)
    body = REGISTER.encode(wanted)
    assert body == {"channel": "https://sqs/q", "attributes": {"colour": "red"}, "lease": 60}
    assert REGISTER.decode(body, topic="cars", name="car-1") == wanted
    assert REGISTER.decode({"channel": "q", "lease": None}, topic="t", name="n") == Register("t", "n", "q")
    route = PutRoute("orders", {"source": ["shop"]}, "desk", Policy.SENDER, {"size": "big"})
    assert PUT_ROUTE.decode(PUT_ROUTE.encode(route), name="orders") == route
    assert PUT_ROUTE.decode({"pattern": {}, "topic": "desk"}, name="all") == PutRoute("all", {}, "desk")


def test_why_a_registration_ended_is_told_when_it_has():
    left = ALIVE.leave(Left.QUEUE_GONE, 5)
    assert REGISTRATION.encode(ALIVE)["reason"] is None
    assert REGISTRATION.encode(left)["reason"] == "queue gone"
    assert REGISTRATION.decode(REGISTRATION.encode(left)) == left


def test_an_attribute_filter_is_one_query_parameter():
    wanted = {"colour": "red", "region": "eu=west"}
    assert (encode_attributes(wanted), encode_attributes({})) == ("colour=red,region=eu=west", None)
    assert (decode_attributes("colour=red,region=eu=west"), decode_attributes(None)) == (wanted, {})
    for bad in ("red", "=red", "colour=red,blue"):
        with pytest.raises(InvalidRequest, match="name=value"):
            decode_attributes(bad)
