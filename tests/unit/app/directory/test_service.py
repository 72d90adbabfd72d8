"""The directory: registrations that live, move and leave, and what is told of them."""

import pytest

from fanin import names
from fanin.app.directory.registrar import Registrar, Swept
from fanin.app.directory.service import DirectoryService
from fanin.domain.directory import Register
from fanin.errors import ChannelRefused, InvalidRequest, NotRegistered, Throttled
from tests.lost_answers import LostAnswers
from tests.unit.app.conftest import Crash


def test_a_registration_is_there_for_as_long_as_its_lease(town):
    # Given a registration, kept alive once
    town.register("cars", "a", "q1", lease=60)
    town.clock.advance(50_000)
    town.register("cars", "a", "q1", lease=60)
    # Then it lives until the second lease is over, and not a moment longer
    town.clock.advance(59_000)
    assert town.directory.get("cars", "a").channel == "q1"
    town.clock.advance(2_000)
    with pytest.raises(NotRegistered):
        town.directory.get("cars", "a")
    assert not town.members("cars")


def test_a_heartbeat_is_one_write_and_no_look_at_the_queue(town):
    town.register("cars", "a", "q1")
    writes = town.accesses.writes.total()
    town.memory.channels.queues.clear()
    town.register("cars", "a", "q1")
    assert town.accesses.writes.total() == writes + 1


def test_the_bus_is_told_of_changes_and_of_no_heartbeat(town):
    for request in (
        Register("cars", "a", "q1"),
        Register("cars", "a", "q1"),
        Register("cars", "a", "q1", lease=90),
        Register("cars", "a", "q2"),
        Register("cars", "a", "q2", {"colour": "red"}),
    ):
        town.directory.register(request)
        town.clock.advance(1_000)
    town.directory.deregister("cars", "a")
    town.register("cars", "a", "q1")

    assert town.announced() == [
        names.INSTANCE_REGISTERED,
        names.INSTANCE_MOVED,
        names.INSTANCE_MOVED,
        names.INSTANCE_DEREGISTERED,
        names.INSTANCE_REGISTERED,
    ]


def test_deregistering_twice_is_no_error_and_told_once_also_if_an_answer_was_lost(town):
    town.register("cars", "a", "q1")
    LostAnswers(town.memory).lose("directory.put")

    assert town.directory.deregister("cars", "a")
    assert not town.directory.deregister("cars", "a")


def test_an_end_whose_answer_was_lost_does_not_end_what_came_after_it(town):
    # Given an instance that comes back while its end is repeated
    town.register("cars", "a", "q1")
    town.clock.advance(1)
    LostAnswers(town.memory).lose("directory.put", lambda: town.register("cars", "a", "q2"))

    assert town.directory.deregister("cars", "a")
    assert town.directory.get("cars", "a").channel == "q2"


def test_a_registration_whose_answer_was_lost_is_written_once(town):
    town.register("cars", "a", "q1")
    town.memory.directory.changes.clear()
    answers = LostAnswers(town.memory)
    answers.lose("directory.put")

    registered = town.register("cars", "a", "q2")

    assert answers.repeated
    assert town.directory.get("cars", "a") == registered
    assert len(town.memory.directory.changes) == 1


def test_a_registration_whose_answer_was_lost_does_not_undo_what_others_wrote_silently(town):
    """The call is still under way, so it may count as the later one; but then it says so on the bus."""
    town.register("cars", "a", "q1")
    other = Register("cars", "a", "q2", {"colour": "red"})
    LostAnswers(town.memory).lose("directory.put", lambda: town.directory.register(other))

    registered = town.register("cars", "a", "q1", {"colour": "blue"})

    assert town.directory.get("cars", "a") == registered
    assert town.announced() == [names.INSTANCE_REGISTERED, *[names.INSTANCE_MOVED] * 3]


def test_a_queue_that_is_no_channel_writes_nothing(town):
    with pytest.raises(ChannelRefused):
        town.register("cars", "a", "elsewhere")
    assert not town.accesses.writes


def test_two_who_register_at_once_do_not_lose_a_write(town):
    # Given one who registers while another does
    other = DirectoryService(town.ports)
    town.at("directory.put", "before", lambda: None)  # the topic's
    town.at("directory.put", "before", lambda: other.register(Register("cars", "a", "q2")))
    town.register("cars", "a", "q1")
    # Then both writes are told, the later as a move
    assert town.directory.get("cars", "a").channel == "q1"
    assert town.announced() == [names.INSTANCE_REGISTERED, names.INSTANCE_MOVED]


def test_who_never_gets_through_is_told_to_try_again(town):
    town.register("cars", "a", "q1")
    other = DirectoryService(town.ports)

    def disturb() -> None:
        town.at("directory.put", "before", disturb_once)

    def disturb_once() -> None:
        other.register(Register("cars", "a", "q2"))
        disturb()

    disturb()
    with pytest.raises(Throttled):
        town.register("cars", "a", "q1")


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("write", [1, 2])
def test_a_crash_at_any_write_heals_by_repeating(town, moment, write):
    # Given somebody who dies at the first or second write of a registration
    for _ in range(write - 1):
        town.at("directory.put", moment, lambda: None)
    town.crash_at("directory.put", moment)
    with pytest.raises(Crash):
        town.register("cars", "a", "q1")
    town.register("cars", "a", "q1")
    # Then it is there, was told once, and the registrar sees it
    assert town.announced() == [names.INSTANCE_REGISTERED]
    assert Registrar(town.ports).sweep() == Swept(seen=1)


@pytest.mark.parametrize(
    "detail", [{}, {"topic": "cars", "name": "a"}, {"topic": 1, "name": "a", "channel": "q1"}, [], "text"]
)
def test_a_malformed_detail_is_refused(town, detail):
    with pytest.raises(InvalidRequest):
        town.directory.follow(names.INSTANCE_CREATED, detail)


def test_a_fifo_queue_cannot_be_registered(town):
    town.memory.channels.queues["q.fifo"] = []

    with pytest.raises(ChannelRefused, match="use a standard queue"):
        town.register("cars", "a", "q.fifo")


def test_a_row_that_nobody_can_read_spoils_neither_its_topic_nor_its_own_renewal(town):
    # Given such a row between two others
    for name in "ac":
        town.register("cars", name, "q1")
    town.ports.directory.put("topic/cars", "b", {"channel": "q1", "left": "who knows"}, expires_at=2**40)
    # Then others find the rest, and the instance itself is not registered
    assert town.members("cars") == ["a", "c"]
    assert town.directory.named(["cars/a"]).keys() == {"cars/a"}
    for call in (lambda: town.directory.get("cars", "b"), lambda: town.directory.named(["cars/b"])):
        with pytest.raises(NotRegistered):
            call()
    # And when it registers again, it is there, and the bus is told
    town.memory.directory.changes.clear()
    town.register("cars", "b", "q2")
    assert town.directory.get("cars", "b").channel == "q2"
    assert town.announced() == [names.INSTANCE_REGISTERED]


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
def test_the_refusal_of_a_registration_names_what_is_wrong(town, request_, message):
    writes = town.accesses.writes.total()
    with pytest.raises(InvalidRequest, match=message):
        town.directory.register(request_)
    assert town.accesses.writes.total() == writes


@pytest.mark.parametrize("limit", [0, 1_001])
def test_a_page_is_of_a_topic_and_has_one_to_a_thousand(town, limit):
    with pytest.raises(InvalidRequest, match=r"^limit must be a whole number from 1 to 1000, not"):
        town.directory.page("cars", limit=limit)
    with pytest.raises(InvalidRequest, match=r"^topic must be 1 to 128 letters"):
        town.directory.page("t" * 129)


def test_all_events_of_a_stay_have_ids_of_their_own(town):
    # Given an instance that registered, moved twice, and whose row its time to live removed
    for channel in ("q1", "q2", "q1"):
        town.register("cars", "a", channel)
    rows = [new for namespace, _, new in town.memory.directory.changes if namespace == "topic/cars"]

    for old, new in zip([None, *rows], [*rows, None], strict=True):
        town.directory.announce("cars", old, new)
    # Then a consumer that drops repeats drops nothing
    ids = [event.id for event in town.memory.events.published]
    assert len(set(ids)) == len(ids) == 4


def test_an_end_that_is_overtaken_by_a_heartbeat_still_ends_the_registration(town):
    town.register("cars", "a", "q1")
    town.at("directory.put", "before", lambda: town.register("cars", "a", "q1", lease=90))

    assert town.directory.deregister("cars", "a")
    assert not town.members("cars")
