"""What every store of records promises, whatever it keeps them in."""

from __future__ import annotations

import pytest

from fanin.app.ports.records import Record, Records
from fanin.errors import InvalidRequest

from .conftest import Stores

LATER = 1_800_000_000  # seconds
ROOMS = {"records": "71", "directory": "fleet"}


@pytest.fixture(params=ROOMS)
def table(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def room(table: str) -> str:
    return ROOMS[table]


@pytest.fixture
def records(stores: Stores, table: str) -> Records:
    return getattr(stores, table)


def soon(stores: Stores) -> int:
    return stores.clock.now() // 1000 + 60


def test_a_record_is_read_as_it_was_put(records: Records, room: str) -> None:
    value = {"text": "☂", "none": None, "list": [1, 2.5, {"deep": True}]}

    record, wrote = records.put(room, "reply/1", value, expires_at=LATER)

    assert (record, wrote) == (Record("reply/1", value, 1, LATER), True)
    assert records.read(room, ["reply/1", "reply/2"]) == {"reply/1": record}
    assert records.read(room, []) == {}


def test_every_write_raises_the_version(records: Records, room: str) -> None:
    for version in (1, 2, 3):
        record, wrote = records.put(room, "a", {"n": version}, expires_at=LATER)
        assert (record, wrote) == (Record("a", {"n": version}, version, LATER), True)


def test_only_the_first_puts_what_must_not_be_there(records: Records, room: str) -> None:
    first, _ = records.put(room, "a", {"by": 1}, expires_at=LATER, if_version=0)

    answer = records.put(room, "a", {"by": 2}, expires_at=LATER, if_version=0)

    assert answer == (first, False)
    assert records.read(room, ["a"]) == {"a": first}


def test_only_who_saw_the_last_version_replaces_it(records: Records, room: str) -> None:
    records.put(room, "a", {"n": 1}, expires_at=LATER)
    second, wrote = records.put(room, "a", {"n": 2}, expires_at=LATER, if_version=1)
    assert wrote

    assert records.put(room, "a", {"n": 3}, expires_at=LATER, if_version=1) == (second, False)
    assert records.put(room, "none", {"n": 3}, expires_at=LATER, if_version=1) == (None, False)


def test_what_is_past_its_time_is_as_good_as_not_there(stores: Stores, records: Records, room: str) -> None:
    # Given a record whose time has passed
    records.put(room, "a", {"n": 1}, expires_at=soon(stores))
    stores.clock.advance(60_000)

    # Then nobody finds, deletes or follows it
    assert records.read(room, ["a"]) == {}
    assert records.page(room).records == []
    assert records.delete(room, "a") is False
    assert records.put(room, "a", {"n": 2}, expires_at=LATER, if_version=1) == (None, False)

    # And it is replaced as if it were not there, by a version that nobody has seen before
    record, wrote = records.put(room, "a", {"n": 3}, expires_at=LATER, if_version=0)
    assert (record, wrote) == (Record("a", {"n": 3}, 2, LATER), True)


def test_a_record_is_deleted_once(records: Records, room: str) -> None:
    records.put(room, "a", {}, expires_at=LATER)

    assert records.delete(room, "a", if_version=2) is False
    assert records.delete(room, "a", if_version=1) is True
    assert records.delete(room, "a") is False
    assert records.read(room, ["a"]) == {}


def test_records_are_listed_by_name_and_prefix_in_pages(records: Records, room: str) -> None:
    # Given more records than a page, put in bulk, beside others
    records.put_all(room, {f"item/{n:03}": {"n": n} for n in range(60)}, expires_at=LATER)
    records.put(room, "other", {}, expires_at=LATER)

    # When they are listed
    found, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        page = records.page(room, prefix="item/", cursor=cursor, limit=25)
        found += page.records
        cursor, pages = page.cursor, pages + 1

    # Then each comes once, in order
    assert [record.value["n"] for record in found] == list(range(60))
    assert {record.version for record in found} == {1}


def test_a_cursor_of_another_listing_is_refused(records: Records, room: str) -> None:
    records.put_all(room, {"a/1": {}, "a/2": {}, "b/1": {}}, expires_at=LATER)
    cursor = records.page(room, prefix="a/", limit=1).cursor
    assert cursor is not None

    with pytest.raises(InvalidRequest, match="cursor"):
        records.page(room, prefix="b/", cursor=cursor)


def test_rooms_are_apart(records: Records, room: str) -> None:
    records.put(room, "a", {}, expires_at=LATER)

    assert records.read(room + "1", ["a"]) == {}
    assert records.page(room + "1").records == []
