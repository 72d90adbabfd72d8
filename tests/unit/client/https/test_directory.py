"""The directory and routes over HTTPS do what they do directly."""

import pytest

from fanin.adapters.memory import Memory
from fanin.domain.directory import PutEvent, Register
from fanin.errors import InvalidRequest, OutcomeUnknown


@pytest.fixture(autouse=True)
def queue(memory: Memory) -> None:
    memory.channels.queues["q1"] = []


@pytest.mark.parametrize("name", ["", "..", "a/../jobs?x", "a?x", "\ud800", "é"])
def test_what_is_no_name_is_refused_in_words(services, name):
    for call in (
        services.routing.get,
        services.routing.delete,
        services.buffers.status,
        services.buffers.take,
    ):
        with pytest.raises(InvalidRequest):
            call(name)


def test_what_cannot_be_sent_in_a_query_is_refused_in_words(over_https):
    with pytest.raises(InvalidRequest, match="half of a surrogate pair"):
        over_https.ledger.list(user_key="\ud800")


def test_members_are_read_a_page_at_a_time(over_https, gateway, monkeypatch):
    monkeypatch.setattr("fanin.app.api.patterns.MAX_PAGE", 2)
    for name in ("a", "b", "c", "d"):
        over_https.directory.register(Register("cars", name, "q1", {"even": str(name in "bd")}))
    gateway.requests.clear()

    members = [one.name for one in over_https.directory.members("cars")]

    assert members == ["a", "b", "c", "d"]
    assert len(gateway.requests) >= 2
    assert all("limit=2" in path for _, path in gateway.asked)
    assert [one.name for one in over_https.directory.members("cars", {"even": "True"})] == ["b", "d"]


def test_an_event_whose_answer_was_lost_is_not_sent_again(over_https, gateway, memory):
    gateway.lost = 1
    with pytest.raises(OutcomeUnknown):
        over_https.routing.publish(PutEvent("shop", "Placed", {}))
    assert (len(gateway.requests), len(memory.events.published)) == (1, 1)


@pytest.mark.parametrize("name", ["ü b", "a?b#c", "a%2Fb"])
def test_a_name_is_one_part_of_the_path(services, gateway, name):
    with pytest.raises(InvalidRequest):
        services.directory.get("cars", name)
    assert all(path.startswith("/directory/cars/") and "?" not in path for _, path in gateway.asked)
