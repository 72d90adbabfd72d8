"""The directory: registrations that live, move and leave, and what is told of them."""

from __future__ import annotations

import pytest

from fanin import names
from fanin.app.directory.registrar import Registrar, Swept
from fanin.app.directory.service import TOPIC_PREFIX, DirectoryService
from fanin.domain.directory import GRACE, Register
from fanin.errors import ChannelRefused, InvalidRequest, NotRegistered, Throttled
from tests.unit.app.conftest import Crash, World
from tests.unit.app.directory.conftest import announced


def test_a_registration_is_there_for_as_long_as_its_lease(world: World, directory: DirectoryService) -> None:
    # Given a registration, kept alive once
    directory.register(Register("cars", "a", "q1", lease=60))
    world.clock.advance(50_000)
    directory.register(Register("cars", "a", "q1", lease=60))
    # Then it lives until the second lease is over, and not a moment longer
    world.clock.advance(59_000)
    assert directory.get("cars", "a").channel == "q1"
    world.clock.advance(2_000)
    with pytest.raises(NotRegistered):
        directory.get("cars", "a")
    assert not list(directory.members("cars"))


def test_a_heartbeat_is_one_write_and_no_look_at_the_queue(world: World, directory: DirectoryService) -> None:
    directory.register(Register("cars", "a", "q1"))
    writes = world.accesses.writes.total()
    world.memory.channels.queues.clear()
    directory.register(Register("cars", "a", "q1"))
    assert world.accesses.writes.total() == writes + 1


def test_the_bus_is_told_of_changes_and_of_no_heartbeat(world: World, directory: DirectoryService) -> None:
    for request in (
        Register("cars", "a", "q1"),
        Register("cars", "a", "q1"),
        Register("cars", "a", "q1", lease=90),
        Register("cars", "a", "q2"),
        Register("cars", "a", "q2", {"colour": "red"}),
    ):
        directory.register(request)
        world.clock.advance(1_000)
    directory.deregister("cars", "a")
    directory.register(Register("cars", "a", "q1"))

    assert announced(world, directory) == [
        names.INSTANCE_REGISTERED,
        names.INSTANCE_MOVED,
        names.INSTANCE_MOVED,
        names.INSTANCE_DEREGISTERED,
        names.INSTANCE_REGISTERED,
    ]


def test_a_repeated_record_of_the_stream_tells_the_same_event(
    world: World, directory: DirectoryService
) -> None:
    directory.register(Register("cars", "a", "q1"))
    change = next(one for one in world.memory.directory.changes if one[0] == TOPIC_PREFIX + "cars")
    for _ in range(2):
        directory.announce("cars", *change[1:])
    first, second = world.memory.events.published
    assert first.id == second.id


def test_a_row_that_its_time_to_live_removed_is_told_unless_it_was_told_before(
    world: World, directory: DirectoryService
) -> None:
    directory.register(Register("cars", "a", "q1"))
    alive = world.memory.directory.changes[-1][2]
    directory.deregister("cars", "a")
    left = world.memory.directory.changes[-1][2]
    world.memory.directory.changes = [
        (f"{TOPIC_PREFIX}cars", alive, None),
        (f"{TOPIC_PREFIX}cars", left, None),
    ]
    assert announced(world, directory) == [names.INSTANCE_DEREGISTERED]


def test_deregistering_twice_is_no_error(directory: DirectoryService) -> None:
    directory.register(Register("cars", "a", "q1"))
    assert directory.deregister("cars", "a")
    assert not directory.deregister("cars", "a")


def test_a_topic_is_listed_by_name_and_attributes_in_pages(directory: DirectoryService) -> None:
    for name in "cbad":
        directory.register(Register("cars", name, "q1", {"colour": "red" if name in "ab" else "blue"}))
    page = directory.page("cars", limit=3)
    assert [one.name for one in page.registrations] == ["a", "b", "c"]
    assert [one.name for one in directory.page("cars", cursor=page.cursor).registrations] == ["d"]
    assert [one.name for one in directory.members("cars", {"colour": "blue"})] == ["c", "d"]
    assert not list(directory.members("bikes"))


@pytest.mark.parametrize(
    "request_",
    [
        Register("", "a", "q1"),
        Register("cars", "a/b", "q1"),
        Register("cars", "a", ""),
        Register("cars", "a", "q1", lease=9),
        Register("cars", "a", "q1", {"k": "v" * 257}),
        Register("cars", "a", "q1", {str(n): "" for n in range(17)}),
    ],
)
def test_a_malformed_registration_writes_nothing(world: World, directory: DirectoryService, request_) -> None:
    with pytest.raises(InvalidRequest):
        directory.register(request_)
    assert not world.accesses.writes


def test_a_queue_that_is_no_channel_writes_nothing(world: World, directory: DirectoryService) -> None:
    with pytest.raises(ChannelRefused):
        directory.register(Register("cars", "a", "elsewhere"))
    assert not world.accesses.writes


def test_two_who_register_at_once_do_not_lose_a_write(world: World, directory: DirectoryService) -> None:
    # Given one who registers while another does
    other = DirectoryService(world.ports)
    world.at("directory.put", "before", lambda: None)  # the topic's
    world.at("directory.put", "before", lambda: other.register(Register("cars", "a", "q2")))
    directory.register(Register("cars", "a", "q1"))
    # Then both writes are told, the later as a move
    assert directory.get("cars", "a").channel == "q1"
    assert announced(world, directory) == [names.INSTANCE_REGISTERED, names.INSTANCE_MOVED]


def test_who_never_gets_through_is_told_to_try_again(world: World, directory: DirectoryService) -> None:
    directory.register(Register("cars", "a", "q1"))
    other = DirectoryService(world.ports)

    def disturb() -> None:
        world.at("directory.put", "before", disturb_once)

    def disturb_once() -> None:
        other.register(Register("cars", "a", "q2"))
        disturb()

    disturb()
    with pytest.raises(Throttled):
        directory.register(Register("cars", "a", "q1"))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("write", [1, 2])
def test_a_crash_at_any_write_heals_by_repeating(
    world: World, directory: DirectoryService, moment: str, write: int
) -> None:
    # Given somebody who dies at the first or second write of a registration
    for _ in range(write - 1):
        world.at("directory.put", moment, lambda: None)
    world.crash_at("directory.put", moment)
    with pytest.raises(Crash):
        directory.register(Register("cars", "a", "q1"))
    # When the registration is repeated
    directory.register(Register("cars", "a", "q1"))
    # Then it is there, was told once, and the registrar sees it
    assert announced(world, directory) == [names.INSTANCE_REGISTERED]
    assert Registrar(world.ports).sweep() == Swept(seen=1)


def test_a_row_outlives_its_lease_by_the_grace(world: World, directory: DirectoryService) -> None:
    registration = directory.register(Register("cars", "a", "q1", lease=60))
    assert registration.expires_at == registration.until // 1000 + GRACE


def test_instances_that_are_told_to_come_and_go_are_followed(directory: DirectoryService) -> None:
    directory.follow(names.INSTANCE_CREATED, {"topic": "cars", "name": "a", "channel": "q1", "lease": 60})
    assert directory.get("cars", "a").lease == 60
    directory.follow(names.INSTANCE_DESTROYED, {"topic": "cars", "name": "a"})
    directory.follow(names.INSTANCE_DESTROYED, {"topic": "cars", "name": "a"})
    assert not list(directory.members("cars"))


@pytest.mark.parametrize(
    "detail", [{}, {"topic": "cars", "name": "a"}, {"topic": 1, "name": "a", "channel": "q1"}, [], "text"]
)
def test_a_malformed_detail_is_refused(directory: DirectoryService, detail) -> None:
    with pytest.raises(InvalidRequest):
        directory.follow(names.INSTANCE_CREATED, detail)
