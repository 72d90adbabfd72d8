"""Events as they are sent, and their size as EventBridge counts it."""

from __future__ import annotations

import json

import pytest

from fanin.app.ports.events import Event


def test_an_event_carries_its_own_id_in_its_detail() -> None:
    event = Event("7.complete", "Batch Completed", {"user_key": "☂"}, 0)

    assert event.body == '{"user_key":"☂","id":"7.complete"}'
    assert Event("", "sold", {"n": 7}, 0).body == '{"n":7}'


def test_half_a_surrogate_pair_stays_escaped() -> None:
    assert Event("", "sold", {"n": "\ud83d é"}, 0).body == '{"n":"\\ud83d é"}'


@pytest.mark.parametrize(
    ("character", "size"), [("a", 1), ("é", 2), ("☂", 3), ("💥", 4), ("\n", 2), ("\0", 6)]
)
def test_its_size_is_that_of_its_bytes(character: str, size: int) -> None:
    empty = Event("", "sold", {"n": ""}, 0, source="shop")
    event = Event("", "sold", {"n": character * 100}, 0, source="shop")

    assert empty.size == len('{"n":""}') + len("sold") + len("shop") + 14
    assert event.size - empty.size == 100 * size
    assert json.loads(event.body) == event.detail


def test_its_type_and_source_count_in_bytes_too() -> None:
    assert Event("", "☂", {}, 0, source="é").size == len("{}") + 3 + 2 + 14
