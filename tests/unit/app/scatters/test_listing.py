"""Listing a topic: everybody once, in order, whoever lists and wherever somebody stopped."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.adapters.memory import Memory
from fanin.app.directory.service import TOPIC_PREFIX
from fanin.app.scatters import records as scatter_records
from fanin.app.scatters.records import read_chunk, read_names
from fanin.app.scatters.start import list_recipients
from fanin.domain import limits
from fanin.domain.directory import Registration
from fanin.domain.scatter import Recipient, Scatter
from fanin.errors import RequestTooLarge
from tests.unit.app.conftest import World
from tests.unit.app.scatters.conftest import BATCH

FOREVER = 2**60
SCATTER = Scatter("x", topic="town")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of three and pages of two, so that a dozen cars are a large topic."""
    monkeypatch.setattr(scatter_records, "CHUNK", 3)
    monkeypatch.setattr(limits, "MAX_PAGE", 2)


def register(world: World | Memory, *cars: int, kind: str = "van", seconds: int = 86_400) -> None:
    now = world.clock.now()
    directory = world.ports.directory if isinstance(world, World) else world.directory
    for i in cars:
        there = Registration(
            "town", f"car-{i:02}", f"https://sqs/{i}", {"kind": kind}, seconds, now, now + seconds * 1000
        )
        directory.put(TOPIC_PREFIX + "town", there.name, there.value, expires_at=there.expires_at)


def listed(world: World | Memory, count: int) -> list[int]:
    """The cars that were listed, in the order of the recipients."""
    records = world.ports.records if isinstance(world, World) else world.records
    return [int(name.removeprefix("car-")) for name in read_names(records, 7, range(count)).values()]


@given(cars=st.sets(st.integers(0, 99), max_size=14), turns=st.lists(st.integers(0, 3)))
def test_everybody_is_listed_once_and_in_order_however_often_the_listing_stops(cars, turns):
    # Given a topic, and processes that each list some chunks and stop
    memory = Memory()
    register(memory, *cars)
    for most in turns:
        list_recipients(memory.ports(), BATCH, SCATTER, until=FOREVER, most=most)
    # When one goes on to the end
    count = list_recipients(memory.ports(), BATCH, SCATTER, until=FOREVER)

    assert count == len(cars)
    assert listed(memory, count) == sorted(cars)


def test_a_full_last_chunk_is_followed_by_an_empty_one_that_says_so(world):
    register(world, *range(6))

    assert list_recipients(world.ports, BATCH, SCATTER, until=FOREVER, most=2) is None
    assert list_recipients(world.ports, BATCH, SCATTER, until=FOREVER, most=1) == 6
    before, last = (read_chunk(world.ports.records, BATCH, number) for number in (1, 2))
    assert before is not None
    assert before.recipients == tuple(Recipient(f"car-0{i}", f"https://sqs/{i}") for i in (3, 4, 5))
    assert last is not None
    assert (before.end, last.recipients, last.end) == (False, (), True)


def test_a_chain_of_calls_without_any_time_ends_after_as_many_as_there_are_chunks(world):
    # Given a topic of twelve, and callers whose time is over before they begin
    register(world, *range(12))
    counts: list[int | None] = []
    # When each leaves the rest to the next one
    while not counts or counts[-1] is None:
        counts.append(list_recipients(world.ports, BATCH, SCATTER, until=0))
        assert len(counts) < 10
    # Then each has listed a chunk, and the last one finds nobody left
    assert counts == [None] * 4 + [12]
    assert listed(world, 12) == list(range(12))


def test_a_listing_goes_on_from_the_page_where_it_stopped(world):
    register(world, *range(12))
    list_recipients(world.ports, BATCH, SCATTER, until=FOREVER, most=3)
    before = world.accesses.reads["directory.page"]

    assert list_recipients(world.ports, BATCH, SCATTER, until=FOREVER) == 12
    assert world.accesses.reads["directory.page"] - before == 2  # of the six of the whole topic


@pytest.mark.parametrize("most", [5, 6, 7])
def test_a_topic_may_have_as_many_as_a_scatter_and_no_more(world, monkeypatch, most):
    monkeypatch.setattr(limits, "MAX_RECIPIENTS", most)
    register(world, *range(most))
    assert list_recipients(world.ports, BATCH, SCATTER, until=FOREVER) == most

    register(world, most)
    for _ in range(2):
        with pytest.raises(
            RequestTooLarge, match=f"topic 'town' has over {most} recipients; choose fewer of them with where"
        ):
            list_recipients(world.ports, replace(BATCH, batch_id=8), SCATTER, until=FOREVER)


def test_it_stops_when_its_time_is_over(world):
    register(world, *range(12))
    now = world.clock.at

    world.at("records.put", "after", lambda: world.clock.advance(1_000))
    assert list_recipients(world.ports, BATCH, SCATTER, until=now + 1_000) is None
    assert world.accesses.writes["records.put"] == 1
