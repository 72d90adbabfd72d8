"""The directory: registrations that live, move and leave, and what is told of them."""

from __future__ import annotations

import pytest

from fanin import names
from fanin.app.directory.registrar import Registrar, Swept
from fanin.app.directory.service import TOPIC_PREFIX, DirectoryService
from fanin.domain.directory import Register, Registration
from fanin.errors import ChannelRefused, InvalidRequest, NotRegistered, Throttled
from tests.lost_answers import LostAnswers
from tests.unit.app.conftest import Crash, World

HOUR = 3_600_000


@pytest.fixture
def directory(world: World) -> DirectoryService:
    for url in ("q1", "q2"):
        world.memory.channels.queues[url] = []
    return DirectoryService(world.ports)


def test_a_registration_is_stored_where_every_version_looks_for_it(
    world: World, directory: DirectoryService
) -> None:
    directory.register(Register("cars", "a", "q1"))

    one = world.ports.directory.read("topic/cars", ["a"])["a"]
    # A topic is listed for a month longer than its registration may exist. So a heartbeat seldom has to list
    # it again, and the registrar finds what the heartbeats left.
    listed = world.ports.directory.read("topics", ["cars"])["cars"]
    assert listed.expires_at - one.expires_at == 30 * 86_400


def announced(world: World, directory: DirectoryService) -> list[str]:
    """Hand the table's stream on, and say what the bus was told."""
    changes, world.memory.directory.changes = world.memory.directory.changes, []
    for namespace, old, new in changes:
        if namespace.startswith(TOPIC_PREFIX):
            directory.announce(namespace.removeprefix(TOPIC_PREFIX), old, new)
    told, world.memory.events.published = world.memory.events.published, []
    return [event.detail_type for event in told]


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


def test_all_events_of_a_stay_have_ids_of_their_own(world: World, directory: DirectoryService) -> None:
    # Given an instance that registered, moved twice, and whose row its time to live removed
    for channel in ("q1", "q2", "q1"):
        directory.register(Register("cars", "a", channel))
    rows = [new for namespace, _, new in world.memory.directory.changes if namespace == "topic/cars"]

    # When all of that is told
    for old, new in zip([None, *rows], [*rows, None], strict=True):
        directory.announce("cars", old, new)

    # Then a consumer that drops repeats drops nothing
    ids = [event.id for event in world.memory.events.published]
    assert len(set(ids)) == len(ids) == 4


def test_deregistering_twice_is_no_error(directory: DirectoryService) -> None:
    directory.register(Register("cars", "a", "q1"))
    assert directory.deregister("cars", "a")
    assert not directory.deregister("cars", "a")


def test_an_end_whose_answer_was_lost_is_told_as_one(world: World, directory: DirectoryService) -> None:
    directory.register(Register("cars", "a", "q1"))
    LostAnswers(world.memory).lose("directory.put")

    assert directory.deregister("cars", "a")


def test_an_end_whose_answer_was_lost_does_not_end_what_came_after_it(
    world: World, directory: DirectoryService
) -> None:
    # Given an instance that comes back while its end is repeated
    directory.register(Register("cars", "a", "q1"))
    world.clock.advance(1)
    LostAnswers(world.memory).lose("directory.put", lambda: directory.register(Register("cars", "a", "q2")))

    assert directory.deregister("cars", "a")
    assert directory.get("cars", "a").channel == "q2"


def test_an_end_that_is_overtaken_by_a_heartbeat_still_ends_the_registration(
    world: World, directory: DirectoryService
) -> None:
    directory.register(Register("cars", "a", "q1"))
    world.at("directory.put", "before", lambda: directory.register(Register("cars", "a", "q1", lease=90)))

    assert directory.deregister("cars", "a")
    assert not list(directory.members("cars"))


def test_a_registration_whose_answer_was_lost_is_written_once(
    world: World, directory: DirectoryService
) -> None:
    directory.register(Register("cars", "a", "q1"))
    world.memory.directory.changes.clear()
    answers = LostAnswers(world.memory)
    answers.lose("directory.put")

    registered = directory.register(Register("cars", "a", "q2"))

    assert answers.repeated
    assert directory.get("cars", "a") == registered
    assert len(world.memory.directory.changes) == 1


def test_a_registration_whose_answer_was_lost_does_not_undo_what_others_wrote_silently(
    world: World, directory: DirectoryService
) -> None:
    """The call is still under way, so it may count as the later one; but then it says so on the bus."""
    directory.register(Register("cars", "a", "q1"))
    other = Register("cars", "a", "q2", {"colour": "red"})
    LostAnswers(world.memory).lose("directory.put", lambda: directory.register(other))

    registered = directory.register(Register("cars", "a", "q1", {"colour": "blue"}))

    assert directory.get("cars", "a") == registered
    assert announced(world, directory) == [names.INSTANCE_REGISTERED, *[names.INSTANCE_MOVED] * 3]


def test_a_topic_is_listed_by_name_and_attributes_in_pages(directory: DirectoryService) -> None:
    for name in "cbad":
        directory.register(Register("cars", name, "q1", {"colour": "red" if name in "ab" else "blue"}))
    page = directory.page("cars", limit=3)
    assert [one.name for one in page.registrations] == ["a", "b", "c"]
    assert [one.name for one in directory.page("cars", cursor=page.cursor).registrations] == ["d"]
    assert [one.name for one in directory.members("cars", {"colour": "blue"})] == ["c", "d"]
    assert not list(directory.members("bikes"))


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


def test_a_topic_is_listed_for_as_long_as_it_has_rows(world: World, directory: DirectoryService) -> None:
    # Given a registration that is kept alive for two months
    for _ in range(60):
        directory.register(Register("cars", "a", "q1", lease=2 * 86_400))
        world.clock.advance(86_400_000)
    # Then the registrar still finds it, also when its lease is over
    assert Registrar(world.ports).sweep().seen == 1
    world.clock.advance(86_400_000 + HOUR)
    assert Registrar(world.ports).sweep() == Swept(seen=1, over=1)


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


def test_a_fifo_queue_cannot_be_registered_nor_kept(world: World, directory: DirectoryService) -> None:
    # Given a registration of a FIFO queue that another version of fanin accepted
    world.memory.channels.queues["q.fifo"] = []
    old = Registration("cars", "a", "q.fifo", {}, 3_600, world.clock.at, world.clock.at + HOUR)
    world.ports.directory.put("topic/cars", "a", old.value, expires_at=old.expires_at)

    # When it is renewed, or another is made, Then both are refused
    for name in "ab":
        with pytest.raises(ChannelRefused, match="use a standard queue"):
            directory.register(Register("cars", name, "q.fifo"))


def test_a_row_that_nobody_can_read_spoils_neither_its_topic_nor_its_own_renewal(
    world: World, directory: DirectoryService
) -> None:
    # Given such a row between two others
    for name in "ac":
        directory.register(Register("cars", name, "q1"))
    world.ports.directory.put("topic/cars", "b", {"channel": "q1", "left": "who knows"}, expires_at=2**40)

    # Then others find the rest, and the instance itself is not registered
    assert [one.name for one in directory.members("cars")] == ["a", "c"]
    assert directory.named(["cars/a"]).keys() == {"cars/a"}
    for call in (lambda: directory.get("cars", "b"), lambda: directory.named(["cars/b"])):
        with pytest.raises(NotRegistered):
            call()

    # And when it registers again, it is there, and the bus is told
    world.memory.directory.changes.clear()
    directory.register(Register("cars", "b", "q2"))
    assert directory.get("cars", "b").channel == "q2"
    assert announced(world, directory) == [names.INSTANCE_REGISTERED]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Register("t" * 129, "a", "q1"), r"^topic must be 1 to 128 letters"),
        (Register("cars", "n" * 129, "q1"), r"^name must be 1 to 128 letters"),
        (Register("cars", "a", ""), r"^channel must be text of 1 to 1024 characters"),
        (Register("cars", "a", "q" * 1_025), r"^channel must be text of 1 to 1024 characters"),
        (Register("cars", "a", "q1", {"": "v"}), r"^a key of attributes must be text of 1 to 64"),
        (Register("cars", "a", "q1", lease=9), r"^lease must be a whole number from 10 to 2592000, not"),
        (Register("cars", "a", "q1", lease=2_592_001), r"^lease must be a whole number from 10 to 2592000"),
    ],
)
def test_the_refusal_of_a_registration_names_what_is_wrong(
    world: World, directory: DirectoryService, request_: Register, message: str
) -> None:
    writes = world.accesses.writes.total()
    with pytest.raises(InvalidRequest, match=message):
        directory.register(request_)
    assert world.accesses.writes.total() == writes


@pytest.mark.parametrize("lease", [10, 2_592_000])
def test_the_shortest_and_the_longest_lease_are_granted(directory: DirectoryService, lease: int) -> None:
    assert directory.register(Register("cars", "a", "q1", lease=lease)).lease == lease


@pytest.mark.parametrize("limit", [0, 1_001])
def test_a_page_is_of_a_topic_and_has_one_to_a_thousand(directory: DirectoryService, limit: int) -> None:
    with pytest.raises(InvalidRequest, match=r"^limit must be a whole number from 1 to 1000, not"):
        directory.page("cars", limit=limit)
    with pytest.raises(InvalidRequest, match=r"^topic must be 1 to 128 letters"):
        directory.page("t" * 129)
