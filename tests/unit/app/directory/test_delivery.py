"""Notes of deliveries that were not finished."""

from __future__ import annotations

import pytest

from fanin.app.directory import delivery
from fanin.app.directory.delivery import MOST_WAITING, Delivery
from tests.unit.app.directory.conftest import Town

WHERE = ("delivery/e-1", "orders")


@pytest.mark.parametrize("event_id", [None, "", 7, "x" * 129])
def test_an_event_without_an_id_has_no_note(event_id: object) -> None:
    assert delivery.place("orders", event_id) is None


def test_a_note_tells_who_waits_for_a_day(town: Town) -> None:
    # Given a note
    records = town.ports.directory
    left = Delivery(3, 1, ["b", "c"])
    delivery.keep(records, delivery.place("orders", "e-1"), left, town.clock.now())

    # Then it is read as it was
    found = Delivery.of(records.read_all([WHERE])[WHERE].value)
    assert (found.sent, found.refused) == (3, 1)
    assert [found.goes_to(name) for name in "abc"] == [False, True, True]

    # And it is gone after a day, when nobody delivers the event any more
    town.clock.advance(86_401_000)
    assert records.read_all([WHERE]) == {}
    assert Delivery.of(None).goes_to("a")


def test_a_note_that_is_too_large_for_a_record_is_not_written(town: Town) -> None:
    names = [f"{number:0128}" for number in range(MOST_WAITING + 1)]
    delivery.keep(town.ports.directory, WHERE, Delivery(1, 0, names), town.clock.now())
    assert town.ports.directory.read_all([WHERE]) == {}

    delivery.keep(town.ports.directory, WHERE, Delivery(1, 0, names[1:]), town.clock.now())
    value = town.ports.directory.read_all([WHERE])[WHERE].value
    assert len(str(value)) < 350_000
