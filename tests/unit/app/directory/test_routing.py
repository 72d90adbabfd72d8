"""Routes, events, and who gets them."""

import json
from typing import Any

import pytest

from fanin import names
from fanin.app.directory.routing import NAMESPACE, Routed
from fanin.app.directory.service import DirectoryService
from fanin.domain import limits
from fanin.domain.directory import Policy, PutEvent, PutRoute
from fanin.errors import AccessDenied, InvalidRequest, LimitReached, Throttled
from tests.lost_answers import LostAnswers
from tests.unit.app.conftest import Crash
from tests.unit.app.directory.conftest import Town

PATTERN = {"source": ["shop"], "detail": {"kind": ["order"]}}
EVENT = {"id": "e-1", "source": "shop", "detail-type": "Placed", "detail": {"kind": "order", "n": 7}}


@pytest.fixture
def town() -> Town:
    """Three who have a desk, and a queue each."""
    town = Town()
    for name in "abc":
        town.memory.channels.queues[f"q-{name}"] = []
        town.register("desk", name, f"q-{name}", {"size": "small" if name == "a" else "big"})
    return town


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (PutRoute("x" * 41, PATTERN, "desk"), "^route must be text of 1 to 40 characters"),
        (PutRoute("orders", {"source": "shop"}, "desk"), "event pattern: Event pattern is not valid"),
        (PutRoute("orders", {"source": ["x" * 2_049]}, "desk"), "^the pattern is over 2048 characters"),
        (PutRoute("orders", {"source": ["é" * 400]}, "desk"), "^the pattern is over 2048 characters"),
        (PutRoute("orders", {"source": [b"x"]}, "desk"), "^the pattern cannot be written as JSON"),
        (PutRoute("orders", {"n": [float("nan")]}, "desk"), "^the pattern cannot be written as JSON"),
        (PutRoute("orders", PATTERN, "t" * 129), "^topic must be 1 to 128 letters"),
        (PutRoute("orders", PATTERN, "desk", attributes={"": "v"}), "^a key of attributes must be text"),
    ],
)
def test_a_malformed_route_is_told_what_is_wrong_and_writes_nothing(town, request_, message):
    writes = town.accesses.writes.total()
    with pytest.raises(InvalidRequest, match=message):
        town.routing.put(request_)
    assert town.accesses.writes.total() == writes
    assert not town.memory.rules.patterns


@pytest.mark.parametrize("call", ["directory.put", "rules.put"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_while_a_route_is_made_heals_by_the_stream(town, call, moment):
    # Given somebody who dies while making a route
    town.memory.directory.changes.clear()
    town.crash_at(call, moment)
    with pytest.raises(Crash):
        town.routing.put(PutRoute("orders", PATTERN, "desk"))
    # When the table's stream tells what was written
    for _ in [namespace for namespace, _, _ in town.memory.directory.changes if namespace == NAMESPACE]:
        town.routing.settle("orders")
    # Then row and rule are both there, or neither
    rows = [route.name for route in town.routing.page().routes]
    assert rows == list(town.memory.rules.patterns)
    assert bool(rows) == ((call, moment) != ("directory.put", "before"))


def test_a_route_whose_deletion_lost_its_answer_was_deleted(town):
    town.routing.put(PutRoute("orders", PATTERN, "desk"))
    LostAnswers(town.memory).lose("directory.delete")

    assert town.routing.delete("orders")
    assert not town.memory.rules.patterns


def test_a_crash_while_a_route_is_deleted_heals_by_the_stream(town):
    town.routing.put(PutRoute("orders", PATTERN, "desk"))
    town.crash_at("rules.delete", "before")
    with pytest.raises(Crash):
        town.routing.delete("orders")
    town.routing.settle("orders")
    assert not town.memory.rules.patterns


def test_the_last_change_of_a_route_wins_over_a_slower_one(town):
    # Given a change that comes while another is about to make its rule
    other = {"source": ["other"]}
    town.at("rules.put", "before", lambda: town.routing.put(PutRoute("orders", other, "desk")))
    town.routing.put(PutRoute("orders", PATTERN, "desk"))
    # Then the rule is as the row is
    assert town.memory.rules.patterns["orders"] == town.routing.get("orders").pattern == other


@pytest.mark.parametrize("error", [LimitReached("full"), AccessDenied("no"), ValueError("who knows")])
def test_a_route_whose_rule_is_refused_for_good_is_not_left_behind(town, error):
    # Given a route that exists, and a bus that takes no rule
    old = town.routing.put(PutRoute("old", PATTERN, "desk"))
    for _ in range(2):
        town.refuse("rules.put", error)
    # When one is made and the other changed, Then all is as it was
    with pytest.raises(type(error)):
        town.routing.put(PutRoute("orders", PATTERN, "desk"))
    with pytest.raises(type(error)):
        town.routing.put(PutRoute("old", {"source": ["other"]}, "desk"))
    assert town.routing.page().routes == (old,)
    assert town.memory.rules.patterns == {"old": PATTERN}


def test_a_route_whose_rule_may_still_be_made_stays_for_the_stream_to_make_it(town):
    town.refuse("rules.put", Throttled("busy"))
    with pytest.raises(Throttled):
        town.routing.put(PutRoute("orders", PATTERN, "desk"))

    town.routing.settle("orders")
    assert town.memory.rules.patterns == {"orders": PATTERN}


@pytest.mark.parametrize("is_new", [False, True])
def test_a_refused_change_does_not_take_back_that_of_another(town, is_new):
    # Given a change that is refused after another one was made
    if not is_new:
        town.routing.put(PutRoute("orders", PATTERN, "desk"))
    other = {"source": ["other"]}

    def refuse() -> None:
        town.routing.put(PutRoute("orders", other, "desk"))
        raise AccessDenied("no")

    town.at("rules.put", "before", refuse)
    with pytest.raises(AccessDenied):
        town.routing.put(PutRoute("orders", {"source": ["mine"]}, "desk"))

    assert town.routing.get("orders").pattern == other


@pytest.mark.parametrize(
    ("policy", "attributes", "detail", "queues"),
    [
        (Policy.ALL, {}, {}, {"q-a", "q-b", "q-c"}),
        (Policy.FIRST, {"size": "big"}, {}, {"q-b"}),
        (Policy.SENDER, {}, {"reply_to": "q-c"}, {"q-c"}),
    ],
)
def test_the_policy_says_who_gets_an_event(town, policy, *, attributes, detail, queues):
    town.routing.put(PutRoute("orders", PATTERN, "desk", policy, attributes))
    routed = town.routing.route("orders", {**EVENT, "detail": detail})
    assert routed == Routed(sent=len(queues))
    assert town.delivered() == dict.fromkeys(queues, 1)


def test_a_queue_that_is_gone_is_passed_over(town):
    for name, policy in (("every", Policy.ALL), ("one", Policy.FIRST)):
        town.routing.put(PutRoute(name, PATTERN, "desk", policy))
    del town.memory.channels.queues["q-a"]
    assert town.routing.route("every", EVENT) == Routed(sent=2, refused=1)
    assert town.routing.route("one", EVENT) == Routed(sent=1, refused=1)
    assert town.delivered() == {"q-b": 2, "q-c": 1}


def test_an_event_that_nobody_takes_is_unrouted(town):
    town.routing.put(PutRoute("orders", PATTERN, "empty"))
    assert town.routing.route("orders", EVENT) == Routed(unrouted=True)


def test_an_event_of_a_route_that_was_deleted_is_dropped(town):
    assert town.routing.route("orders", EVENT) == Routed()


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (PutEvent("fanin", "Batch Completed"), "^source 'fanin'"),
        (PutEvent("aws.ec2", "x"), "^source 'aws.ec2'"),
        (PutEvent("shop", "Instance Created", {"topic": "cars"}), "^fanin acts on .* use the directory's"),
        (PutEvent("shop", "Instance Destroyed", {"topic": "cars"}), "^fanin acts on .* use the directory's"),
        (PutEvent("", "x"), "^source must be text of 1 to 256 characters"),
        (PutEvent("s" * 257, "x"), "^source must be text of 1 to 256 characters"),
        (PutEvent("shop", ""), "^detail_type must be text of 1 to 128 characters"),
        (PutEvent("shop", "x" * 129), "^detail_type must be text of 1 to 128 characters"),
        (PutEvent("shop", "x", {"correlation_id": 7}), r"^detail\.correlation_id must be text of 1 to 256"),
        (PutEvent("shop", "x", {"correlation_id": "c" * 257}), r"^detail\.correlation_id must be text of 1"),
        (PutEvent("shop", "x", {"deep": [float("nan")]}), "^detail cannot be written as JSON"),
    ],
)
def test_an_event_that_may_not_be_is_refused(town, event, message):
    with pytest.raises(InvalidRequest, match=message):
        town.routing.publish(event)
    assert not town.memory.events.published


def test_a_route_that_cannot_be_read_or_tested_hides_no_other(town):
    # Given two routes, by name before another one: a pattern that was accepted once, and an unknown policy
    town.routing.put(PutRoute("orders", PATTERN, "desk"))
    row = town.ports.directory.read(NAMESPACE, ["orders"])["orders"]
    town.ports.directory.put(NAMESPACE, "a", {**row.value, "pattern": {"source": "x"}}, expires_at=2**40)
    town.ports.directory.put(NAMESPACE, "b", {**row.value, "policy": "who knows"}, expires_at=2**40)

    assert [route.name for route in town.routing.page().routes] == ["a", "orders"]
    assert town.routing.stray(EVENT) == Routed()
    assert town.routing.stray({**EVENT, "source": "other"}) == Routed(unrouted=True)


def test_limits_of_an_event_count_bytes_and_not_ascii_escapes(town):
    # Given a route to everybody
    town.routing.put(PutRoute("orders", {"source": ["shop"]}, "desk"))
    # When an event with 190 KB of UTF-8 is published and routed
    detail = {"text": "é" * 95_000}
    town.routing.publish(PutEvent("shop", "Placed", detail))
    town.routing.route("orders", EVENT | {"detail": detail})
    # Then its message is one that every queue takes
    (message, *_) = town.memory.channels.queues["q-a"]
    assert len(message.body.encode()) < limits.MAX_QUEUE_BYTES
    # And an event of more bytes is refused, although it has fewer characters than the limit
    with pytest.raises(InvalidRequest, match="over 204800 bytes"):
        town.routing.publish(PutEvent("shop", "Placed", {"text": "é" * 103_000}))


def throttled(town: Town, event: dict[str, Any], *queues: str) -> None:
    """Route an event to everybody while some queues take no message."""
    town.memory.channels.busy |= {*queues}
    with pytest.raises(Throttled):
        town.routing.route("orders", event)
    town.memory.channels.busy.clear()


class TestThrottled:
    """A queue that takes no message for now costs the others no copies."""

    def test_a_repeat_sends_to_those_only_that_wait(self, town):
        # Given an event for three queues: one is throttled, and one refuses it
        town.routing.put(PutRoute("orders", PATTERN, "desk"))
        town.memory.channels.refusing["q-c"] = "no"
        # When it is routed until the queue takes it again
        for _ in range(3):
            throttled(town, EVENT, "q-b")
        routed = town.routing.route("orders", EVENT)
        # Then each queue has one message, and the answer tells of all of them
        assert town.delivered() == {"q-a": 1, "q-b": 1}
        assert routed == Routed(sent=2, refused=1)

    def test_an_event_for_which_all_wait_writes_nothing(self, town):
        town.routing.put(PutRoute("orders", PATTERN, "desk"))
        writes = town.accesses.writes.total()

        throttled(town, EVENT, "q-a", "q-b", "q-c")

        assert town.accesses.writes.total() == writes

    def test_who_waited_and_has_left_gets_nothing(self, town):
        town.routing.put(PutRoute("orders", PATTERN, "desk"))
        throttled(town, EVENT, "q-b")
        DirectoryService(town.ports).deregister("desk", "b")

        assert town.routing.route("orders", EVENT) == Routed(sent=2)
        assert town.delivered() == {"q-a": 1, "q-c": 1}

    @pytest.mark.parametrize("event_id", [None, "", 7, "x" * 129])
    def test_an_event_without_an_id_goes_to_everybody_again(self, town, event_id):
        town.routing.put(PutRoute("orders", PATTERN, "desk"))
        event = {**EVENT, "id": event_id}
        throttled(town, event, "q-b")

        town.routing.route("orders", event)

        assert town.delivered() == {"q-a": 2, "q-b": 1, "q-c": 2}


def test_an_event_without_a_type_or_an_id_is_sent_with_empty_attributes(town):
    town.routing.put(PutRoute("orders", PATTERN, "desk"))

    town.routing.route("orders", {"detail": {"kind": "order"}})

    (message,) = town.memory.channels.queues["q-a"]
    assert message.attributes[names.ATTRIBUTE_TYPE] == ""
    assert message.attributes[names.ATTRIBUTE_CORRELATION] == ""


@pytest.mark.parametrize("call", ["get", "delete"])
def test_a_name_that_no_route_can_have_is_refused(town, call):
    with pytest.raises(InvalidRequest, match=r"^route must be 1 to 40 letters"):
        getattr(town.routing, call)("x" * 41)


@pytest.mark.parametrize("limit", [0, 1_001])
def test_a_page_of_routes_has_one_to_a_thousand(town, limit):
    with pytest.raises(InvalidRequest, match=r"^limit must be a whole number from 1 to 1000, not"):
        town.routing.page(limit=limit)


def test_a_note_of_who_waits_is_gone_after_a_day(town):
    town.routing.put(PutRoute("orders", PATTERN, "desk"))
    throttled(town, EVENT, "q-b")

    where = ("delivery/e-1", "orders")
    assert town.ports.directory.read_all([where])[where].value == {"sent": 2, "refused": 0, "to": ["b"]}
    town.clock.advance(86_401_000)
    assert town.ports.directory.read_all([where]) == {}


def test_more_who_wait_than_a_record_can_name_all_get_the_event_again(town, monkeypatch):
    monkeypatch.setattr("fanin.app.directory.routing.MOST_WAITING", 1)
    town.routing.put(PutRoute("orders", PATTERN, "desk"))
    throttled(town, EVENT, "q-b", "q-c")

    town.routing.route("orders", EVENT)

    assert town.delivered() == {"q-a": 2, "q-b": 1, "q-c": 1}


def test_a_message_carries_the_event_and_what_it_belongs_to(town):
    # Given an event, repeated; and one with a correlation id
    town.routing.put(PutRoute("orders", PATTERN, "desk", Policy.FIRST))
    mine = {**EVENT, "detail": {**EVENT["detail"], "correlation_id": "mine"}}
    for event in (EVENT, EVENT, mine):
        town.routing.route("orders", event)
    # Then the repeat is the same message, and each carries its correlation id
    first, again, other = town.memory.channels.queues["q-a"]
    assert first == again
    assert json.loads(first.body) == EVENT
    assert first.attributes == {names.ATTRIBUTE_CORRELATION: "e-1", names.ATTRIBUTE_TYPE: "Placed"}
    assert other.attributes[names.ATTRIBUTE_CORRELATION] == "mine"
