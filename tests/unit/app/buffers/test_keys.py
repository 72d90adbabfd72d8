"""The notes of keys: made once, changed only by those who saw the last one, and each payload counts."""

from __future__ import annotations

import pytest

from fanin.app.buffers.keys import Keys
from fanin.app.buffers.records import Entry
from fanin.app.buffers.slots import LIFETIME, RENEWAL, renew_at
from fanin.domain.buffer import Buffer
from fanin.errors import IdempotencyKeyReused, InvalidRequest
from tests.lost_answers import LostAnswers
from tests.unit.app.conftest import World


@pytest.fixture
def keys(world: World) -> Keys:
    return Keys(world.ports)


@pytest.fixture
def entry(world: World) -> Entry:
    batch, _ = world.batch()
    buffer = Buffer("jobs", 3, "https://mine", owned=False, batch_id=batch.batch_id)
    return Entry(buffer, world.clock.at + (LIFETIME - RENEWAL) * 1000, 60, born=batch.batch_id)


def test_a_note_is_made_once(keys: Keys, entry: Entry) -> None:
    first = keys.find(entry, "order-7", ["a"])
    again = keys.find(entry, "order-7", ["a"])

    assert first.new
    assert not again.new
    assert again == first._replace(new=False)
    assert (first.group, first.round, first.slots_key) == (None, 0, "order-7")


def test_a_note_is_stored_where_every_version_looks_for_it(world: World, keys: Keys, entry: Entry) -> None:
    keys.find(entry, "order-7", ["a", "b"])

    row = world.ports.records.read(str(entry.born), ["put/order-7"])["put/order-7"]
    assert row.value.keys() >= {"digest", "round", "group", "sent_at", "given_up"}
    assert row.value["digest"] == "c95b5b0a5d45c522dc032df817b0abc7"


def test_a_note_whose_first_answer_was_lost_may_be_anothers(world: World, keys: Keys, entry: Entry) -> None:
    LostAnswers(world.memory).lose("records.put", lambda: None)

    assert not keys.find(entry, "order-7", ["a"]).new


@pytest.mark.parametrize("payloads", [["b"], ["a", "b"], ["a", ""], ["ab"], []])
def test_a_note_stands_for_its_payloads(keys: Keys, entry: Entry, payloads: list[str]) -> None:
    keys.find(entry, "order-7", ["a"])

    with pytest.raises(IdempotencyKeyReused, match="'order-7' was used to put other payloads"):
        keys.find(entry, "order-7", payloads)


def test_payloads_count_in_their_order_and_as_they_are_split(keys: Keys, entry: Entry) -> None:
    keys.find(entry, "order-7", ["a", "b"])

    for payloads in (["b", "a"], ["ab"], ['a", "b']):
        with pytest.raises(IdempotencyKeyReused):
            keys.find(entry, "order-7", payloads)


@pytest.mark.parametrize("key", ["", "x" * 129])
def test_a_key_that_cannot_be_is_refused_and_nothing_is_written(
    world: World, keys: Keys, entry: Entry, key: str
) -> None:
    with pytest.raises(InvalidRequest, match="Idempotency-Key"):
        keys.find(entry, key, ["a"])
    assert world.accesses.writes["records.put"] == 0


def test_what_was_sent_is_kept(world: World, keys: Keys, entry: Entry) -> None:
    assert keys.keep(entry, keys.find(entry, "order-7", ["a"]), "7:group")

    note = keys.find(entry, "order-7", ["a"])
    assert (note.group, note.sent_at) == ("7:group", world.clock.at)


def test_what_was_sent_is_kept_though_the_answer_was_lost(world: World, keys: Keys, entry: Entry) -> None:
    note = keys.find(entry, "order-7", ["a"])
    LostAnswers(world.memory).lose("records.put", lambda: keys.find(entry, "order-7", ["a"]))

    assert keys.keep(entry, note, "7:group")


def test_of_two_calls_that_sent_the_same_both_keep_it(keys: Keys, entry: Entry) -> None:
    note = keys.find(entry, "order-7", ["a"])

    assert keys.keep(entry, note, "7:group")
    assert keys.keep(entry, note, "7:group")


def test_slots_that_were_given_up_are_not_kept(keys: Keys, entry: Entry) -> None:
    # Given two calls that saw the same note, of which one gives up its slots
    note = keys.find(entry, "order-7", ["a"])
    keys.put_again(entry, note, "7:group")

    # Then the other has sent in vain, and both go on with other slots
    assert not keys.keep(entry, note, "7:group")
    again = keys.find(entry, "order-7", ["a"])
    assert (again.group, again.given_up, again.round) == (None, "7:group", 1)
    assert again.slots_key not in {"order-7", note.slots_key}
    assert len(again.slots_key) <= 128


def test_slots_are_given_up_once_by_all_who_saw_them(world: World, keys: Keys, entry: Entry) -> None:
    note = keys.find(entry, "order-7", ["a"])
    LostAnswers(world.memory).lose("records.put", lambda: keys.put_again(entry, note, "7:group"))
    keys.put_again(entry, note, "7:group")
    keys.put_again(entry, note, "7:group")

    assert keys.find(entry, "order-7", ["a"]).round == 1


def test_slots_that_were_kept_are_not_given_up_by_those_who_did_not_see_it(keys: Keys, entry: Entry) -> None:
    note = keys.find(entry, "order-7", ["a"])
    keys.keep(entry, note, "7:group")

    keys.put_again(entry, note, "7:group")

    assert keys.find(entry, "order-7", ["a"]).group == "7:group"


def test_a_key_gives_its_payloads_slots_of_their_own(keys: Keys, entry: Entry) -> None:
    notes = [keys.find(entry, key, ["a"]) for key in ("one", "two")]
    for note in notes:
        keys.put_again(entry, note, None)

    slots = {keys.find(entry, key, ["a"]).slots_key for key in ("one", "two")}
    assert len(slots) == 2


def test_a_note_outlives_a_change_of_the_batch_by_a_month(world: World, keys: Keys, entry: Entry) -> None:
    keys.find(entry, "order-7", ["a"])
    batch, _ = world.batch()
    world.clock.at = entry.renew_at
    renewed = entry._replace(renew_at=renew_at(batch))

    world.clock.advance(RENEWAL * 1000 - 1000)
    assert not keys.find(renewed, "order-7", ["a"]).new
    world.clock.advance(1000)
    assert keys.find(renewed, "order-7", ["a"]).new


def test_keys_of_another_buffer_are_others(world: World, keys: Keys, entry: Entry) -> None:
    batch, _ = world.batch()
    keys.find(entry, "order-7", ["a"])

    assert keys.find(entry._replace(born=batch.batch_id), "order-7", ["b"]).new
