"""What every store of records promises, whatever it keeps them in."""

import pytest

from fanin.adapters import cursors
from fanin.app.ports.records import Record, Records
from fanin.errors import InvalidRequest

from .conftest import Stores

LATER = 1_800_000_000  # seconds
NAMESPACES = {"records": "71", "directory": "fleet"}


@pytest.fixture(params=NAMESPACES)
def table(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def namespace(table: str) -> str:
    return NAMESPACES[table]


@pytest.fixture
def records(stores: Stores, table: str) -> Records:
    return getattr(stores, table)


def soon(stores: Stores) -> int:
    return stores.clock.now() // 1000 + 60


def test_a_record_is_read_as_it_was_put(records, namespace):
    value = {"text": "☂", "none": None, "list": [1, 2.5, {"deep": True}]}

    record, wrote = records.put(namespace, "reply/1", value, expires_at=LATER)

    assert record is not None
    assert (record, wrote) == (Record("reply/1", value, record.version, LATER), True)
    assert records.read(namespace, ["reply/1", "reply/2", "reply/1"]) == {"reply/1": record}
    assert records.read(namespace, []) == {}


def test_every_write_raises_the_version(stores, records, namespace):
    start = stores.clock.now()
    for n in (1, 2, 3):
        record, wrote = records.put(namespace, "a", {"n": n}, expires_at=LATER)
        assert (record, wrote) == (Record("a", {"n": n}, start + n, LATER), True)


def test_a_record_that_is_made_again_has_a_version_that_none_before_it_had(stores, records, namespace):
    # Given a record that was deleted, and made again by somebody else
    first, _ = records.put(namespace, "a", {"by": 1}, expires_at=LATER)
    assert first is not None
    assert records.delete(namespace, "a", if_version=first.version)
    stores.clock.advance(1)
    again, _ = records.put(namespace, "a", {"by": 2}, expires_at=LATER, if_version=0)
    # Then the delete, whose answer was lost and which is repeated, does not find it; nor does a put
    assert records.delete(namespace, "a", if_version=first.version) is False
    assert records.put(namespace, "a", {}, expires_at=LATER, if_version=first.version) == (again, False)


def test_only_the_first_puts_what_must_not_be_there(records, namespace):
    first, _ = records.put(namespace, "a", {"by": 1}, expires_at=LATER, if_version=0)

    answer = records.put(namespace, "a", {"by": 2}, expires_at=LATER, if_version=0)

    assert answer == (first, False)
    assert records.read(namespace, ["a"]) == {"a": first}


def test_only_who_saw_the_last_version_replaces_it(records, namespace):
    first, _ = records.put(namespace, "a", {"n": 1}, expires_at=LATER)
    assert first is not None
    seen = first.version
    second, wrote = records.put(namespace, "a", {"n": 2}, expires_at=LATER, if_version=seen)
    assert wrote

    assert records.put(namespace, "a", {"n": 3}, expires_at=LATER, if_version=seen) == (second, False)
    assert records.put(namespace, "none", {"n": 3}, expires_at=LATER, if_version=seen) == (None, False)


def test_what_is_past_its_time_is_as_good_as_not_there(stores, records, namespace):
    # Given a record whose time has passed
    first, _ = records.put(namespace, "a", {"n": 1}, expires_at=soon(stores))
    assert first is not None
    stores.clock.advance(60_000)
    # Then nobody finds, deletes or follows it
    assert records.read(namespace, ["a"]) == {}
    assert records.page(namespace).records == []
    assert records.delete(namespace, "a") is False
    answer = records.put(namespace, "a", {"n": 2}, expires_at=LATER, if_version=first.version)
    assert answer == (None, False)
    # And it is replaced as if it were not there, by a version that nobody has seen before
    record, wrote = records.put(namespace, "a", {"n": 3}, expires_at=LATER, if_version=0)
    assert (record, wrote) == (Record("a", {"n": 3}, first.version + 1, LATER), True)


def test_a_record_that_is_put_past_its_time_is_written_and_not_there(stores, records, namespace):
    past = stores.clock.now() // 1000

    assert records.put(namespace, "a", {"n": 1}, expires_at=past) == (None, True)
    assert records.read(namespace, ["a"]) == {}


def test_a_record_is_deleted_once(records, namespace):
    record, _ = records.put(namespace, "a", {}, expires_at=LATER)
    assert record is not None

    assert records.delete(namespace, "a", if_version=record.version + 1) is False
    assert records.delete(namespace, "a", if_version=record.version) is True
    assert records.delete(namespace, "a") is False
    assert records.read(namespace, ["a"]) == {}


def test_records_are_listed_by_name_and_prefix_in_pages(records, namespace):
    # Given more records than a page, put in bulk, beside others
    records.put_all(namespace, {f"item/{n:03}": {"n": n} for n in range(60)}, expires_at=LATER)
    records.put(namespace, "other", {}, expires_at=LATER)
    # When they are listed
    found, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        page = records.page(namespace, prefix="item/", cursor=cursor, limit=25)
        found += page.records
        cursor, pages = page.cursor, pages + 1
    # Then each comes once, in order
    assert [record.value["n"] for record in found] == list(range(60))
    assert {record.version for record in found} == {1}


def test_records_of_several_namespaces_are_read_at_once(records, namespace, table):
    far = str((3 << 53) + 71) if table == "records" else "another"
    records.put_all(namespace, {"a": {"n": 1}, "b": {"n": 2}}, expires_at=LATER)
    records.put_all(far, {"a": {"n": 3}}, expires_at=LATER)
    keys = [(namespace, "a"), (far, "a"), (far, "b"), (namespace, "a")]

    found = records.read_all(keys)

    assert {key: record.value for key, record in found.items()} == {
        (namespace, "a"): {"n": 1},
        (far, "a"): {"n": 3},
    }
    assert records.read_all([]) == {}


def test_a_page_of_nothing_but_expired_records_still_goes_on(stores, records, namespace):
    # Given two records at the moment in which their time is up, and one behind them that lives
    records.put_all(namespace, {"a": {}, "b": {}}, expires_at=soon(stores))
    records.put_all(namespace, {"c": {}}, expires_at=soon(stores) + 1)
    stores.clock.advance(60_000)

    empty = records.page(namespace, limit=2)
    rest = records.page(namespace, cursor=empty.cursor, limit=2)

    assert empty.records == []
    assert ([record.name for record in rest.records], rest.cursor) == (["c"], None)


def test_a_cursor_of_another_listing_is_refused(records, namespace):
    for space in (namespace, namespace + "1"):
        records.put_all(space, {"a/1": {}, "a/2": {}, "b/1": {}, "b/2": {}}, expires_at=LATER)
    right, other_prefix, other_namespace = (
        records.page(space, prefix=prefix, limit=1).cursor or ""
        for space, prefix in ((namespace, "b/"), (namespace, "a/"), (namespace + "1", "b/"))
    )
    outside = cursors.encode(cursors._unpack(right)[0], "a/1")

    for wrong in (other_prefix, other_namespace, outside):
        with pytest.raises(InvalidRequest, match="cursor"):
            records.page(namespace, prefix="b/", cursor=wrong)
    assert [record.name for record in records.page(namespace, prefix="b/", cursor=right).records] == ["b/2"]


def test_namespaces_are_apart(records, namespace):
    records.put(namespace, "a", {}, expires_at=LATER)

    assert records.read(namespace + "1", ["a"]) == {}
    assert records.page(namespace + "1").records == []
