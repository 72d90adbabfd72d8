"""The notes of keys: made once, changed only by those who saw the last one, and each payload counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.app.buffers.put_keys import PutKeys
from fanin.app.buffers.records import Entry
from fanin.app.buffers.slots import LIFETIME, RENEWAL, renew_at
from fanin.domain.buffer import Buffer
from fanin.domain.principals import IdempotencyKey, Principal
from fanin.errors import IdempotencyKeyReused, InvalidRequest
from tests.lost_answers import LostAnswers
from tests.unit.app.conftest import World

KEY = IdempotencyKey.of("order-7")
OLD = "7:group:0"


@pytest.fixture
def keys(world: World) -> PutKeys:
    return PutKeys(world.ports)


@pytest.fixture
def entry(world: World) -> Entry:
    batch, _ = world.batch()
    buffer = Buffer("jobs", 3, "https://mine", owned=False, batch_id=batch.batch_id)
    return Entry(buffer, world.clock.at + (LIFETIME - RENEWAL) * 1000, 60, born=batch.batch_id)


def test_a_note_is_made_once(keys: PutKeys, entry: Entry) -> None:
    first = keys.find(entry, KEY, ["a"])
    again = keys.find(entry, KEY, ["a"])

    assert first.new
    assert not again.new
    assert again == first._replace(new=False)
    assert (first.items, first.left, first.round, first.slots_key) == (("",), (0,), 0, "order-7")
    assert first.batch_id == entry.buffer.batch_id


def test_a_note_is_stored_where_every_process_looks_for_it(world: World, keys: PutKeys, entry: Entry) -> None:
    keys.find(entry, KEY, ["a", "b"])

    name = f"put/{KEY.name}"
    row = world.ports.records.read(str(entry.born), [name])[name]
    assert row.value.keys() == {"digest", "round", "items", "left", "batch_id", "sent_at"}
    assert row.value["digest"] == "c95b5b0a5d45c522dc032df817b0abc7"


def test_a_note_whose_first_answer_was_lost_may_be_anothers(
    world: World, keys: PutKeys, entry: Entry
) -> None:
    LostAnswers(world.memory).lose("records.put", lambda: None)

    assert not keys.find(entry, KEY, ["a"]).new


@pytest.mark.parametrize("payloads", [["a"], ["a", "b", ""], ["b", "a"], ["ab"], ['a", "b']])
def test_a_note_stands_for_its_payloads_in_their_order(
    keys: PutKeys, entry: Entry, payloads: list[str]
) -> None:
    keys.find(entry, KEY, ["a", "b"])

    with pytest.raises(IdempotencyKeyReused, match="'order-7' was used to put other payloads"):
        keys.find(entry, KEY, payloads)


@pytest.mark.parametrize("key", ["", "x" * 257])
def test_a_key_that_cannot_be_is_refused_and_nothing_is_written(
    world: World, keys: PutKeys, entry: Entry, key: str
) -> None:
    with pytest.raises(InvalidRequest, match="Idempotency-Key"):
        keys.find(entry, IdempotencyKey.of(key), ["a"])
    assert world.accesses.writes["records.put"] == 0


def test_what_was_sent_is_kept_by_each_call_that_sent_it(world: World, keys: PutKeys, entry: Entry) -> None:
    note = keys.find(entry, KEY, ["a"])

    assert keys.keep(entry, note, [OLD])
    assert keys.keep(entry, note, [OLD])

    kept = keys.find(entry, KEY, ["a"])
    assert (kept.items, kept.left, kept.sent_at) == ((OLD,), (), world.clock.at)


def test_what_was_sent_is_kept_though_the_answer_was_lost(world: World, keys: PutKeys, entry: Entry) -> None:
    note = keys.find(entry, KEY, ["a"])
    LostAnswers(world.memory).lose("records.put", lambda: keys.find(entry, KEY, ["a"]))

    assert keys.keep(entry, note, [OLD])


def test_slots_that_were_given_up_are_not_kept(keys: PutKeys, entry: Entry) -> None:
    # Given three calls that saw the same note, of which two give up its slots
    note = keys.find(entry, KEY, ["a"])
    keys.put_again(entry, note, [OLD], [0])
    keys.put_again(entry, note, [OLD], [0])

    # Then the other has sent in vain, and all go on with the same other slots
    assert not keys.keep(entry, note, [OLD])
    again = keys.find(entry, KEY, ["a"])
    assert (again.items, again.left, again.replaced, again.round) == ((OLD,), (0,), (OLD,), 1)
    assert again.slots_key not in {"order-7", note.slots_key}
    assert len(again.slots_key) <= 256


def test_slots_that_were_kept_are_not_given_up_by_those_who_did_not_see_it(
    keys: PutKeys, entry: Entry
) -> None:
    note = keys.find(entry, KEY, ["a"])
    keys.keep(entry, note, [OLD])

    keys.put_again(entry, note, [OLD], [0])
    keys.move(entry._replace(buffer=replace(entry.buffer, batch_id=9)), note)

    found = keys.find(entry, KEY, ["a"])
    assert (found.items, found.left, found.batch_id) == ((OLD,), (), entry.buffer.batch_id)


def test_a_key_gives_its_payloads_slots_of_their_own(keys: PutKeys, entry: Entry) -> None:
    notes = [keys.find(entry, IdempotencyKey.of(key), ["a"]) for key in ("one", "two")]
    for note in notes:
        keys.put_again(entry, note, [""], [0])

    slots = {keys.find(entry, IdempotencyKey.of(key), ["a"]).slots_key for key in ("one", "two")}
    assert len(slots) == 2


def test_some_payloads_get_other_slots_and_the_others_keep_theirs(keys: PutKeys, entry: Entry) -> None:
    # Given a note of three payloads, of which two are put in again
    payloads = ["a", "b", "c"]
    long = IdempotencyKey.of("x" * 256)
    keys.keep(entry, keys.find(entry, long, payloads), ["7:one:0", "7:one:1", "7:one:2"])
    sent = keys.find(entry, long, payloads)
    keys.put_again(entry, sent, sent.items, [0, 2])

    # Then their slots have a key of their own, and take the places of those that were given up
    again = keys.find(entry, long, payloads)
    assert again.replaced == ("7:one:0", "7:one:2")
    assert again.slots_key != again._replace(left=(0, 1, 2)).slots_key
    assert len(again.slots_key) <= 256
    assert again.filled(["8:two:0", "8:two:1"]) == ("8:two:0", "7:one:1", "8:two:1")


def test_a_note_names_the_batch_in_which_slots_are_taken(keys: PutKeys, entry: Entry) -> None:
    renewed = entry._replace(buffer=replace(entry.buffer, batch_id=9))
    keys.find(entry, KEY, ["a"])
    assert keys.find(renewed, KEY, ["a"]).batch_id == entry.buffer.batch_id

    keys.move(renewed, keys.find(renewed, KEY, ["a"]))

    moved = keys.find(entry, KEY, ["a"])
    assert (moved.batch_id, moved.round, moved.slots_key) == (9, 0, "order-7")


def test_a_note_outlives_a_change_of_the_batch_by_a_month(world: World, keys: PutKeys, entry: Entry) -> None:
    keys.find(entry, KEY, ["a"])
    batch, _ = world.batch()
    world.clock.at = entry.renew_at
    renewed = entry._replace(renew_at=renew_at(batch))

    world.clock.advance(RENEWAL * 1000 - 1000)
    assert not keys.find(renewed, KEY, ["a"]).new
    world.clock.advance(1000)
    assert keys.find(renewed, KEY, ["a"]).new


def test_keys_of_another_buffer_are_others(world: World, keys: PutKeys, entry: Entry) -> None:
    batch, _ = world.batch()
    keys.find(entry, KEY, ["a"])

    assert keys.find(entry._replace(born=batch.batch_id), KEY, ["b"]).new


def test_a_key_of_another_caller_is_another_key(world: World, keys: PutKeys, entry: Entry) -> None:
    # Given the work that one caller has put in under a key
    mine = IdempotencyKey.of("order-7", Principal("ada", "iam ada"))
    keys.keep(entry, keys.find(entry, mine, ["a"]), [OLD])
    # When another uses the same text, for the same work and for other work
    theirs = IdempotencyKey.of("order-7", Principal("bob", "iam bob"))
    note = keys.find(entry, theirs, ["a"])
    # Then theirs is new, with slots of its own, and each has their own note when they come again
    assert note.new
    assert note.caller != keys.find(entry, mine, ["a"]).caller
    assert keys.find(entry, mine, ["a"]).items == (OLD,)
    assert keys.find(entry, theirs, ["a"]) == note._replace(new=False)
    with pytest.raises(IdempotencyKeyReused):
        keys.find(entry, theirs, ["b"])
    # And somebody without an identity has a third one
    assert keys.find(entry, KEY, ["b"]).new
