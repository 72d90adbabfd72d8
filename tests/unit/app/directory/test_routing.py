"""Routes, events, and who gets them."""

from __future__ import annotations

import json

import pytest

from fanin import names
from fanin.app.directory.routing import NAMESPACE, Routed, RoutingService
from fanin.app.directory.service import DirectoryService
from fanin.domain import limits
from fanin.domain.directory import Register
from fanin.domain.routing import Policy, PutEvent, PutRoute
from fanin.errors import AccessDenied, InvalidRequest, LimitReached, RouteNotFound, Throttled
from tests.lost_answers import LostAnswers
from tests.unit.app.conftest import Crash, World

PATTERN = {"source": ["shop"], "detail": {"kind": ["order"]}}
EVENT = {"id": "e-1", "source": "shop", "detail-type": "Placed", "detail": {"kind": "order", "n": 7}}


@pytest.fixture
def routing(world: World) -> RoutingService:
    directory = DirectoryService(world.ports)
    for name in "abc":
        world.memory.channels.queues[f"q-{name}"] = []
        directory.register(Register("desk", name, f"q-{name}", {"size": "small" if name == "a" else "big"}))
    return RoutingService(directory)


def test_a_route_is_stored_where_every_version_looks_for_it(world: World, routing: RoutingService) -> None:
    routing.put(PutRoute("orders", PATTERN, "desk"))

    row = world.ports.directory.read("routes", ["orders"])["orders"]
    assert row.value.keys() == {"pattern", "topic", "policy", "attributes", "since"}


def delivered(world: World) -> dict[str, int]:
    return {url: len(messages) for url, messages in world.memory.channels.queues.items() if messages}


def test_a_route_lives_as_a_row_and_a_rule(world: World, routing: RoutingService) -> None:
    route = routing.put(PutRoute("orders", PATTERN, "desk"))
    assert routing.get("orders") == route
    assert world.memory.rules.patterns == {"orders": PATTERN}
    assert routing.page().routes == (route,)
    assert routing.delete("orders")
    assert not routing.delete("orders")
    assert world.memory.rules.patterns == {}
    with pytest.raises(RouteNotFound):
        routing.get("orders")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (PutRoute("x" * 41, PATTERN, "desk"), "^route must be text of 1 to 40 characters"),
        (PutRoute("orders", {"source": "shop"}, "desk"), "event pattern must be"),
        (PutRoute("orders", {"source": ["x" * 2_049]}, "desk"), "^the pattern is over 2048 characters"),
        (PutRoute("orders", PATTERN, "t" * 129), "^topic must be 1 to 128 letters"),
        (PutRoute("orders", PATTERN, "desk", attributes={"": "v"}), "^a key of attributes must be text"),
    ],
)
def test_a_malformed_route_is_told_what_is_wrong_and_writes_nothing(
    world: World, routing: RoutingService, request_: PutRoute, message: str
) -> None:
    writes = world.accesses.writes.total()
    with pytest.raises(InvalidRequest, match=message):
        routing.put(request_)
    assert world.accesses.writes.total() == writes
    assert not world.memory.rules.patterns


@pytest.mark.parametrize("call", ["directory.put", "rules.put"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_while_a_route_is_made_heals_by_the_stream(
    world: World, routing: RoutingService, call: str, moment: str
) -> None:
    # Given somebody who dies while making a route
    world.memory.directory.changes.clear()
    world.crash_at(call, moment)
    with pytest.raises(Crash):
        routing.put(PutRoute("orders", PATTERN, "desk"))
    # When the table's stream tells what was written
    for _ in [namespace for namespace, _, _ in world.memory.directory.changes if namespace == NAMESPACE]:
        routing.settle("orders")
    # Then row and rule are both there, or neither
    rows = [route.name for route in routing.page().routes]
    assert rows == list(world.memory.rules.patterns)
    assert bool(rows) == ((call, moment) != ("directory.put", "before"))


def test_a_route_whose_deletion_lost_its_answer_was_deleted(world: World, routing: RoutingService) -> None:
    routing.put(PutRoute("orders", PATTERN, "desk"))
    LostAnswers(world.memory).lose("directory.delete")

    assert routing.delete("orders")
    assert not world.memory.rules.patterns


def test_a_rule_agrees_with_its_route_whatever_is_repeated_while_others_change_it(
    world: World, routing: RoutingService
) -> None:
    # Given a change whose write is repeated after another change, and after a deletion
    other = {"source": ["other"]}
    answers = LostAnswers(world.memory)
    answers.lose("directory.put", lambda: routing.put(PutRoute("orders", other, "desk")))
    routing.put(PutRoute("orders", PATTERN, "desk"))
    assert world.memory.rules.patterns == {"orders": routing.get("orders").pattern}

    answers.lose("directory.put", lambda: routing.delete("orders"))
    routing.put(PutRoute("orders", other, "desk"))
    assert world.memory.rules.patterns == {"orders": routing.get("orders").pattern}


def test_a_crash_while_a_route_is_deleted_heals_by_the_stream(world: World, routing: RoutingService) -> None:
    routing.put(PutRoute("orders", PATTERN, "desk"))
    world.crash_at("rules.delete", "before")
    with pytest.raises(Crash):
        routing.delete("orders")
    routing.settle("orders")
    assert not world.memory.rules.patterns


def test_the_last_change_of_a_route_wins_over_a_slower_one(world: World, routing: RoutingService) -> None:
    # Given a change that comes while another is about to make its rule
    other = {"source": ["other"]}
    world.at("rules.put", "before", lambda: routing.put(PutRoute("orders", other, "desk")))
    routing.put(PutRoute("orders", PATTERN, "desk"))
    # Then the rule is as the row is
    assert world.memory.rules.patterns["orders"] == routing.get("orders").pattern == other


@pytest.mark.parametrize("error", [LimitReached("full"), AccessDenied("no"), ValueError("who knows")])
def test_a_route_whose_rule_is_refused_for_good_is_not_left_behind(
    world: World, routing: RoutingService, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    # Given a route that exists, and a bus that takes no rule
    old = routing.put(PutRoute("old", PATTERN, "desk"))

    def refuse(route: str, pattern: object) -> None:
        raise error

    monkeypatch.setattr(world.memory.rules, "put", refuse)

    # When one is made and the other changed, Then all is as it was
    with pytest.raises(type(error)):
        routing.put(PutRoute("orders", PATTERN, "desk"))
    with pytest.raises(type(error)):
        routing.put(PutRoute("old", {"source": ["other"]}, "desk"))
    assert routing.page().routes == (old,)
    assert world.memory.rules.patterns == {"old": PATTERN}


def test_a_route_whose_rule_may_still_be_made_stays_for_the_stream_to_make_it(
    world: World, routing: RoutingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(route: str, pattern: object) -> None:
        raise Throttled("busy")

    with monkeypatch.context() as patch:
        patch.setattr(world.memory.rules, "put", busy)
        with pytest.raises(Throttled):
            routing.put(PutRoute("orders", PATTERN, "desk"))

    routing.settle("orders")
    assert world.memory.rules.patterns == {"orders": PATTERN}


@pytest.mark.parametrize("is_new", [False, True])
def test_a_refused_change_does_not_take_back_that_of_another(
    world: World, routing: RoutingService, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    # Given a change that is refused after another one was made
    if not is_new:
        routing.put(PutRoute("orders", PATTERN, "desk"))
    other = {"source": ["other"]}
    put = world.memory.rules.put

    def refuse(route: str, pattern: object) -> None:
        monkeypatch.setattr(world.memory.rules, "put", put)
        routing.put(PutRoute("orders", other, "desk"))
        raise AccessDenied("no")

    monkeypatch.setattr(world.memory.rules, "put", refuse)
    with pytest.raises(AccessDenied):
        routing.put(PutRoute("orders", {"source": ["mine"]}, "desk"))

    assert routing.get("orders").pattern == other


def test_a_route_of_the_version_before_whose_name_no_rule_can_have_can_be_deleted(
    world: World, routing: RoutingService
) -> None:
    row = {"pattern": PATTERN, "topic": "desk", "policy": "all", "attributes": {}, "since": 0}
    world.ports.directory.put(NAMESPACE, "a:b", row, expires_at=2**40)

    assert routing.get("a:b").name == "a:b"
    assert routing.delete("a:b")
    assert routing.page().routes == ()


@pytest.mark.parametrize(
    ("policy", "attributes", "detail", "queues"),
    [
        (Policy.ALL, {}, {}, {"q-a", "q-b", "q-c"}),
        (Policy.FIRST, {"size": "big"}, {}, {"q-b"}),
        (Policy.SENDER, {}, {"reply_to": "q-c"}, {"q-c"}),
    ],
)
def test_the_policy_says_who_gets_an_event(
    world: World, routing: RoutingService, policy: Policy, *, attributes, detail, queues
) -> None:
    routing.put(PutRoute("orders", PATTERN, "desk", policy, attributes))
    routed = routing.route("orders", {**EVENT, "detail": detail})
    assert routed == Routed(sent=len(queues))
    assert delivered(world) == dict.fromkeys(queues, 1)


def test_a_message_carries_the_event_and_what_it_belongs_to(world: World, routing: RoutingService) -> None:
    # Given an event, repeated; and one with a correlation id
    routing.put(PutRoute("orders", PATTERN, "desk", Policy.FIRST))
    mine = {**EVENT, "detail": {**EVENT["detail"], "correlation_id": "mine"}}
    for event in (EVENT, EVENT, mine):
        routing.route("orders", event)
    # Then the repeat is the same message, and each carries its correlation id
    first, again, other = world.memory.channels.queues["q-a"]
    assert first == again
    assert json.loads(first.body) == EVENT
    assert first.attributes == {names.ATTRIBUTE_CORRELATION: "e-1", names.ATTRIBUTE_TYPE: "Placed"}
    assert other.attributes[names.ATTRIBUTE_CORRELATION] == "mine"


def test_a_queue_that_is_gone_is_passed_over(world: World, routing: RoutingService) -> None:
    for name, policy in (("every", Policy.ALL), ("one", Policy.FIRST)):
        routing.put(PutRoute(name, PATTERN, "desk", policy))
    del world.memory.channels.queues["q-a"]
    assert routing.route("every", EVENT) == Routed(sent=2, refused=1)
    assert routing.route("one", EVENT) == Routed(sent=1, refused=1)
    assert delivered(world) == {"q-b": 2, "q-c": 1}


def test_an_event_that_nobody_takes_is_unrouted(routing: RoutingService) -> None:
    routing.put(PutRoute("orders", PATTERN, "empty"))
    assert routing.route("orders", EVENT) == Routed(unrouted=True)


def test_an_event_of_a_route_that_was_deleted_is_dropped(routing: RoutingService) -> None:
    assert routing.route("orders", EVENT) == Routed()


def test_a_stray_is_an_event_that_matches_no_route(world: World, routing: RoutingService) -> None:
    routing.put(PutRoute("orders", PATTERN, "desk"))
    assert routing.stray(EVENT) == Routed()
    assert routing.stray({**EVENT, "source": "other"}) == Routed(unrouted=True)


def test_an_event_that_a_route_may_match_by_an_operator_not_known_here_is_no_stray(
    world: World, routing: RoutingService
) -> None:
    # Given a route whose pattern EventBridge took, with an operator that is newer than this release
    routing.put(PutRoute("orders", PATTERN, "desk"))
    row = world.ports.directory.read(NAMESPACE, ["orders"])["orders"]
    newer = {**PATTERN, "detail": {"kind": [{"sounds-like": "order"}]}}
    world.ports.directory.put(NAMESPACE, "orders", {**row.value, "pattern": newer}, expires_at=2**40)

    # Then an event that it may match is not counted; one that it cannot match is
    assert routing.stray(EVENT) == Routed()
    assert routing.stray({**EVENT, "source": "other"}) == Routed(unrouted=True)


def test_a_router_sees_a_new_route_after_a_while(world: World, routing: RoutingService) -> None:
    assert routing.stray(EVENT).unrouted
    RoutingService(DirectoryService(world.ports)).put(PutRoute("orders", PATTERN, "desk"))
    assert routing.stray(EVENT).unrouted
    world.clock.advance(30_000)
    assert not routing.stray(EVENT).unrouted


def test_an_event_gets_a_correlation_id_if_it_has_none(world: World, routing: RoutingService) -> None:
    first, second = (routing.publish(PutEvent("shop", "Placed", {"n": 7})) for _ in range(2))
    mine = routing.publish(PutEvent("shop", "Placed", {"correlation_id": "mine"}))
    assert first.correlation_id != second.correlation_id
    assert mine.correlation_id == "mine"
    published = world.memory.events.published
    assert [event.source for event in published] == ["shop"] * 3
    assert published[0].detail == {"n": 7, "correlation_id": first.correlation_id}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (PutEvent("fanin", "Batch Completed"), "^source 'fanin'"),
        (PutEvent("aws.ec2", "x"), "^source 'aws.ec2'"),
        (PutEvent("", "x"), "^source must be text of 1 to 256 characters"),
        (PutEvent("s" * 257, "x"), "^source must be text of 1 to 256 characters"),
        (PutEvent("shop", ""), "^detail_type must be text of 1 to 128 characters"),
        (PutEvent("shop", "x" * 129), "^detail_type must be text of 1 to 128 characters"),
        (PutEvent("shop", "x", {"correlation_id": 7}), r"^detail\.correlation_id must be text of 1 to 256"),
        (PutEvent("shop", "x", {"correlation_id": "c" * 257}), r"^detail\.correlation_id must be text of 1"),
        (PutEvent("shop", "x", {"deep": [float("nan")]}), "^detail cannot be written as JSON"),
    ],
)
def test_an_event_that_may_not_be_is_refused(
    world: World, routing: RoutingService, event: PutEvent, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        routing.publish(event)
    assert not world.memory.events.published


def test_the_shortest_and_the_longest_names_of_an_event_are_published(
    world: World, routing: RoutingService
) -> None:
    routing.publish(PutEvent("s", "t", {"correlation_id": "c"}))
    routing.publish(PutEvent("s" * 256, "t" * 128, {"correlation_id": "c" * 256}))

    assert [len(event.source) for event in world.memory.events.published] == [1, 256]


def test_a_route_that_cannot_be_read_or_tested_hides_no_other(world: World, routing: RoutingService) -> None:
    # Given two routes, by name before another one: a pattern that was accepted once, and an unknown policy
    routing.put(PutRoute("orders", PATTERN, "desk"))
    row = world.ports.directory.read(NAMESPACE, ["orders"])["orders"]
    world.ports.directory.put(NAMESPACE, "a", {**row.value, "pattern": {"source": "x"}}, expires_at=2**40)

    world.ports.directory.put(NAMESPACE, "b", {**row.value, "policy": "who knows"}, expires_at=2**40)

    assert [route.name for route in routing.page().routes] == ["a", "orders"]
    assert routing.stray(EVENT) == Routed()
    assert routing.stray({**EVENT, "source": "other"}) == Routed(unrouted=True)


def test_limits_of_an_event_count_bytes_and_not_ascii_escapes(world: World, routing: RoutingService) -> None:
    # Given a route to everybody
    routing.put(PutRoute("orders", {"source": ["shop"]}, "desk"))

    # When an event with 190 KB of UTF-8 is published and routed
    detail = {"text": "é" * 95_000}
    routing.publish(PutEvent("shop", "Placed", detail))
    routing.route("orders", EVENT | {"detail": detail})

    # Then its message is one that every queue takes
    (message, *_) = world.memory.channels.queues["q-a"]
    assert len(message.body.encode()) < limits.MAX_QUEUE_BYTES

    # And an event of more bytes is refused, although it has fewer characters than the limit
    with pytest.raises(InvalidRequest, match="over 204800 bytes"):
        routing.publish(PutEvent("shop", "Placed", {"text": "é" * 103_000}))


class TestThrottled:
    """A queue that takes no message for now costs the others no copies."""

    def test_a_repeat_sends_to_those_only_that_wait(self, world: World, routing: RoutingService) -> None:
        # Given an event for three queues: one is throttled, and one refuses it
        routing.put(PutRoute("orders", PATTERN, "desk"))
        world.memory.channels.busy.add("q-b")
        world.memory.channels.refusing["q-c"] = "no"

        # When it is routed until the queue takes it again
        for _ in range(3):
            with pytest.raises(Throttled):
                routing.route("orders", EVENT)
        world.memory.channels.busy.clear()
        routed = routing.route("orders", EVENT)

        # Then each queue has one message, and the answer tells of all of them
        assert delivered(world) == {"q-a": 1, "q-b": 1}
        assert routed == Routed(sent=2, refused=1)

    def test_an_event_for_which_all_wait_writes_nothing(self, world: World, routing: RoutingService) -> None:
        routing.put(PutRoute("orders", PATTERN, "desk"))
        world.memory.channels.busy |= {"q-a", "q-b", "q-c"}
        writes = world.accesses.writes.total()

        with pytest.raises(Throttled):
            routing.route("orders", EVENT)

        assert world.accesses.writes.total() == writes

    def test_another_event_and_another_route_go_to_everybody(
        self, world: World, routing: RoutingService
    ) -> None:
        routing.put(PutRoute("orders", PATTERN, "desk"))
        routing.put(PutRoute("others", PATTERN, "desk"))
        world.memory.channels.busy.add("q-b")
        with pytest.raises(Throttled):
            routing.route("orders", EVENT)
        world.memory.channels.busy.clear()

        routing.route("orders", {**EVENT, "id": "e-2"})
        routing.route("others", EVENT)

        assert delivered(world) == {"q-a": 3, "q-b": 2, "q-c": 3}

    def test_who_waited_and_has_left_gets_nothing(self, world: World, routing: RoutingService) -> None:
        routing.put(PutRoute("orders", PATTERN, "desk"))
        world.memory.channels.busy.add("q-b")
        with pytest.raises(Throttled):
            routing.route("orders", EVENT)
        DirectoryService(world.ports).deregister("desk", "b")

        assert routing.route("orders", EVENT) == Routed(sent=2)
        assert delivered(world) == {"q-a": 1, "q-c": 1}

    def test_an_event_without_an_id_goes_to_everybody_again(
        self, world: World, routing: RoutingService
    ) -> None:
        routing.put(PutRoute("orders", PATTERN, "desk"))
        world.memory.channels.busy.add("q-b")
        event = {name: value for name, value in EVENT.items() if name != "id"}
        with pytest.raises(Throttled):
            routing.route("orders", event)
        world.memory.channels.busy.clear()

        routing.route("orders", event)

        assert delivered(world) == {"q-a": 2, "q-b": 1, "q-c": 2}


def test_an_event_without_a_type_or_an_id_is_sent_with_empty_attributes(
    world: World, routing: RoutingService
) -> None:
    routing.put(PutRoute("orders", PATTERN, "desk"))

    routing.route("orders", {"detail": {"kind": "order"}})

    (message,) = world.memory.channels.queues["q-a"]
    assert message.attributes[names.ATTRIBUTE_TYPE] == ""
    assert message.attributes[names.ATTRIBUTE_CORRELATION] == ""


@pytest.mark.parametrize("call", ["get", "delete"])
def test_a_name_that_no_route_can_have_is_refused(routing: RoutingService, call: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^route must be 1 to 40 letters"):
        getattr(routing, call)("x" * 41)


@pytest.mark.parametrize("limit", [0, 1_001])
def test_a_page_of_routes_has_one_to_a_thousand(routing: RoutingService, limit: int) -> None:
    with pytest.raises(InvalidRequest, match=r"^limit must be a whole number from 1 to 1000, not"):
        routing.page(limit=limit)


def test_pages_of_one_route_go_through_all_routes(routing: RoutingService) -> None:
    for name in "abc":
        routing.put(PutRoute(name, PATTERN, "desk"))

    found, cursor = [], None
    for _ in range(3):
        page = routing.page(cursor=cursor, limit=1)
        found += [route.name for route in page.routes]
        cursor = page.cursor

    assert found == ["a", "b", "c"]
