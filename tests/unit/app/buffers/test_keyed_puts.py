"""Putting work in with a key: its slots hold, and it is in once, however late the put is repeated.

The notes of keys: made once, changed only by those who saw the last one, and each payload counts.
"""

import pytest

from fanin.app.buffers.puts import Puts
from fanin.app.buffers.records import WorkEntry
from fanin.app.buffers.service import BufferService
from fanin.app.buffers.slots import LIFETIME, MARGIN_MS, RENEWAL, SEND_MS, renew_at
from fanin.domain.access import IdempotencyKey, Principal
from fanin.domain.batch import State
from fanin.domain.buffer import Accepted, Buffer
from fanin.errors import IdempotencyKeyReused, InvalidRequest, LimitReached, Throttled
from tests.unit.app.buffers.conftest import Town
from tests.unit.app.conftest import World

HOUR = 3_600_000


@pytest.fixture(autouse=True)
def _jobs(world: World, town: Town) -> None:
    world.memory.queues.retention = 3_600
    town.process().define("jobs", 2)


def put(town: Town, *payloads: str) -> Accepted:
    """Put work in under the key."""
    return town.process().put("jobs", payloads, key="order-7")


def die(town: Town, *payloads: str, sent: int) -> None:
    """Put work in under the key, and die when so many of its messages are sent."""
    for _ in range(sent - 1):
        town.world.at("channels.send", "after", lambda: None)
    moment = "after" if sent else "before"
    town.die("channels.send", moment, lambda buffers: buffers.put("jobs", payloads, key="order-7"))


def batches(world: World) -> list[State]:
    return [row.state for row in world.memory.batches._rows.values()]


class TestOnce:
    def test_a_process_behind_a_new_definition_goes_on_in_the_new_queue(self, town):
        # Given a process that remembers a buffer, which is deleted and defined again
        behind = town.process()
        behind.status("jobs")
        town.process().delete("jobs")
        town.process().define("jobs", 2)
        # And a put into the new one that died between its slots and its messages
        die(town, "a", sent=0)

        behind.put("jobs", ["a"], key="order-7")
        # Then the work is in the new queue
        assert town.messages() == ["a"]
        assert town.take() == ["a"]

    def test_a_repeat_sends_those_that_were_not_sent(self, town):
        # Given a put that dies between its messages, of which the first is worked on
        die(town, "a", "b", sent=1)
        assert town.take() == ["a"]

        put(town, "a", "b")

        assert town.messages() == ["b"]
        assert town.take() == ["b"]

    @pytest.mark.parametrize("late", [0, SEND_MS + 1, 3 * HOUR])
    def test_a_producer_may_die_at_every_step_and_repeat_itself_soon_or_late(self, world, town, late):
        def marked(name: str) -> None:
            """Define a buffer, and let a put mark it."""
            town.process().define(name, 2)
            town.process().put(name, ["x"])
            town.take(name)
            world.clock.advance(60_000)

        for name in town.die_at_every_step(
            marked, lambda buffers, name: buffers.put(name, ["a", "b"], key="order-7")
        ):
            # When it is repeated, then its work is in, and no slot stays leaked
            world.clock.advance(late)
            town.process().put(name, ["a", "b"], key="order-7")
            assert {"a", "b"} <= set(town.take(name)), name
            assert town.pending(name) == 0


def test_failing_a_put_that_takes_too_long_is_not_accepted(world, town):
    world.at("channels.send", "before", lambda: world.clock.advance(SEND_MS + 1))

    with pytest.raises(Throttled, match="again"):
        put(town, "a")

    put(town, "a")
    assert town.take() == ["a"]  # both messages stand for one item, and one is handed out


class TestAfterRetention:
    """A repeat sends again only what is neither finished nor possibly still in the queue."""

    def put_two(self, town: Town) -> Accepted:
        """Put two payloads in, and finish the first."""
        first = put(town, "a", "b")
        town.world.ledger.mark([first.items[0]]).whole()
        return first

    def expire(self, town: Town) -> None:
        """Let so much time pass that no message can exist."""
        town.world.clock.advance(HOUR + MARGIN_MS)

    def test_what_may_still_be_in_the_queue_is_not_put_in_again(self, world, town):
        first = self.put_two(town)
        world.clock.advance(HOUR - 1)

        assert put(town, "a", "b").items == first.items
        world.clock.advance(1)
        assert put(town, "a", "b").items != first.items

    def test_a_repeat_may_die_at_every_step(self, world, town):
        def half_lost(name: str) -> None:
            """Put work in, of which one part is done, and the other lost."""
            town.process().define(name, 2)
            first = town.process().put(name, ["a", "b"], key="order-7")
            world.ledger.mark([first.items[0]]).whole()
            self.expire(town)

        for name in town.die_at_every_step(
            half_lost, lambda buffers, name: buffers.put(name, ["a", "b"], key="order-7")
        ):
            # When it is repeated, then the lost part is in, and what is done is not
            town.process().put(name, ["a", "b"], key="order-7")
            assert set(town.take(name)) == {"b"}, name
            assert town.pending(name) == 0

    @pytest.mark.parametrize("fails", [False, True])
    @pytest.mark.parametrize(
        ("call", "moment"),
        [("parts.put_failures", "before"), ("parts.put_failures", "after"), ("words.clear", "before")],
    )
    def test_work_that_is_finished_while_it_is_given_up_is_not_put_in_again(
        self, world, town, call, moment, fails
    ):
        # Given a put that dies after its message is sent, and slots that are too old then
        die(town, "a", sent=1)
        town.process().put("jobs", ["x"])
        world.clock.advance(SEND_MS + 1)
        # When a consumer does the work, or fails it, while a repeat gives it up
        world.at(call, moment, lambda: taken.extend(town.take(fails=fails)))
        taken = list[str]()
        put(town, "a")
        # Then it is not put in again
        assert taken == ["a", "x"]
        assert town.messages() == []


class TestRenewal:
    """A key is known after the buffer has changed its batch, also while its note does not say "sent"."""

    def renew(self, town: Town) -> None:
        """Change to another batch."""
        town.process().define("jobs", 3 if town.process().list().buffers[0].limit == 2 else 2)
        town.process().put("jobs", ["x"])
        assert town.take() == ["x"]

    def test_a_put_that_took_no_slots_before_takes_them_in_the_new_batch(self, town):
        town.die("batches.allocate_once", "before", lambda buffers: buffers.put("jobs", ["a"], key="order-7"))
        self.renew(town)

        put(town, "a")

        assert town.take() == ["a"]

    def test_work_in_a_batch_that_came_after_the_note_is_known_too(self, town):
        # Given a put that finds its batch closed, so goes to another one, and dies when it has sent
        slow = town.process()
        slow.status("jobs")
        self.renew(town)
        town.die("channels.send", "after", lambda _: slow.put("jobs", ["a"], key="order-7"))
        assert town.take() == ["a"]
        # When the batch changes once more, then a repeat puts nothing in
        self.renew(town)
        put(town, "a")
        assert town.messages() == []

    def test_costs_no_write_more(self, world, town):
        process = town.process()
        process.put("jobs", ["x"], key="order-6")
        before = world.accesses.writes.copy()

        process.put("jobs", ["a"], key="order-7")

        assert world.accesses.writes - before == {"records.put": 2, "batches.allocate_once": 2}

    def test_an_answer_from_an_earlier_batch_leaves_the_marks_alone(self, world, town):
        # Given a key whose work has a high number in an earlier batch
        for _ in range(5):
            town.process().put("jobs", ["x"])
            town.take()
        die(town, "a", sent=1)
        assert town.take() == ["a"]
        self.renew(town)
        world.clock.advance(HOUR)

        put(town, "a")

        entry = town.process()._records.refresh("jobs")
        assert all(items <= 1 for _, items in entry.marks)


class TestLate:
    """A message that follows its slot too late would outlive it."""

    def test_work_put_in_late_under_its_key_is_not_given_up(self, world, town):
        # Given slots of a key without a message, and a mark above them
        die(town, "a", sent=0)
        town.process().put("jobs", ["b"])
        assert town.take() == ["b"]
        # When the put is repeated shortly before the slots would count as leaked
        world.clock.advance(HOUR - 60_000)
        put(town, "a")
        world.clock.advance(MARGIN_MS + 120_000)
        town.process().put("jobs", ["c"])

        with pytest.raises(LimitReached):
            town.process().put("jobs", ["d"])
        assert town.take() == ["a", "c"]

    def test_work_put_in_late_into_a_buffer_that_drains_is_not_given_up(self, town):
        # Given slots of a key in a buffer whose batch closes then
        die(town, "a", sent=0)
        town.process().define("jobs", 3)
        # When the put is repeated late, then the slots are given up for others, and not later
        town.world.clock.advance(HOUR - 60_000)
        put(town, "a")
        town.world.clock.advance(MARGIN_MS + 120_000)
        town.process().put("jobs", ["b"])
        assert town.take() == ["a", "b"]

    def test_whoever_is_overtaken_by_a_later_repeat_is_not_accepted_by_mistake(self, town):
        # Given a call that stops between its messages and the note of them, while a mark is made
        die(town, "a", sent=0)
        town.process().put("jobs", ["b"])
        town.take()

        def later() -> None:
            town.world.clock.advance(SEND_MS - 1)
            put(town, "a")

        town.world.clock.advance(10)
        town.world.at("channels.send", "after", later)
        put(town, "a")
        # Then both were told of work that is in, and the message of the first is void
        assert town.world.happened
        assert town.take() == ["a"]


KEY = IdempotencyKey.of("order-7")
OLD = "7:group:0"


@pytest.fixture
def keys(world: World) -> Puts:
    return BufferService(world.fresh())._puts


@pytest.fixture
def entry(world: World) -> WorkEntry:
    batch, _ = world.batch()
    buffer = Buffer("jobs", 3, "https://mine", owned=False, batch_id=batch.batch_id)
    return WorkEntry(buffer, world.clock.at + (LIFETIME - RENEWAL) * 1000, 60, born=batch.batch_id)


def test_a_note_is_stored_where_every_process_looks_for_it(world, keys, entry):
    keys._find_note(entry, KEY, ["a", "b"])

    name = f"put/{KEY.name}"
    row = world.ports.records.read(str(entry.born), [name])[name]
    assert row.value.keys() == {"digest", "round", "items", "left", "batch_id", "sent_at"}
    assert row.value["digest"] == "c95b5b0a5d45c522dc032df817b0abc7"


@pytest.mark.parametrize("payloads", [["a"], ["a", "b", ""], ["b", "a"], ["ab"], ['a", "b']])
def test_a_note_stands_for_its_payloads_in_their_order(keys, entry, payloads):
    keys._find_note(entry, KEY, ["a", "b"])

    with pytest.raises(IdempotencyKeyReused, match="'order-7' was used to put other payloads"):
        keys._find_note(entry, KEY, payloads)


@pytest.mark.parametrize("key", ["", "x" * 257])
def test_a_key_that_cannot_be_is_refused_and_nothing_is_written(world, keys, entry, key):
    with pytest.raises(InvalidRequest, match="Idempotency-Key"):
        keys._find_note(entry, IdempotencyKey.of(key), ["a"])
    assert world.accesses.writes["records.put"] == 0


def test_slots_that_were_given_up_are_not_kept(keys, entry):
    # Given three calls that saw the same note, of which two give up its slots
    note = keys._find_note(entry, KEY, ["a"])
    keys._note_again(entry, note, [OLD], [0])
    keys._note_again(entry, note, [OLD], [0])
    # Then the other has sent in vain, and all go on with the same other slots
    assert not keys._note_sent(entry, note, [OLD])
    again = keys._find_note(entry, KEY, ["a"])
    assert (again.items, again.left, again.replaced, again.round) == ((OLD,), (0,), (OLD,), 1)
    assert again.slots_key not in {"order-7", note.slots_key}
    assert len(again.slots_key) <= 256


def test_a_key_gives_its_payloads_slots_of_their_own(keys, entry):
    notes = [keys._find_note(entry, IdempotencyKey.of(key), ["a"]) for key in ("one", "two")]
    for note in notes:
        keys._note_again(entry, note, [""], [0])

    slots = {keys._find_note(entry, IdempotencyKey.of(key), ["a"]).slots_key for key in ("one", "two")}
    assert len(slots) == 2


def test_a_note_outlives_a_change_of_the_batch_by_a_month(world, keys, entry):
    keys._find_note(entry, KEY, ["a"])
    batch, _ = world.batch()
    world.clock.at = entry.renew_at
    renewed = entry._replace(renew_at=renew_at(batch))

    world.clock.advance(RENEWAL * 1000 - 1000)
    assert not keys._find_note(renewed, KEY, ["a"]).new
    world.clock.advance(1000)
    assert keys._find_note(renewed, KEY, ["a"]).new


def test_keys_of_another_buffer_are_others(world, keys, entry):
    batch, _ = world.batch()
    keys._find_note(entry, KEY, ["a"])

    assert keys._find_note(entry._replace(born=batch.batch_id), KEY, ["b"]).new


def test_a_key_of_another_caller_is_another_key(world, keys, entry):
    # Given the work that one caller has put in under a key
    mine = IdempotencyKey.of("order-7", Principal("ada", "iam ada"))
    keys._note_sent(entry, keys._find_note(entry, mine, ["a"]), [OLD])
    # When another uses the same text, for the same work and for other work
    theirs = IdempotencyKey.of("order-7", Principal("bob", "iam bob"))
    note = keys._find_note(entry, theirs, ["a"])
    # Then theirs is new, with slots of its own, and each has their own note when they come again
    assert note.new
    assert note.caller != keys._find_note(entry, mine, ["a"]).caller
    assert keys._find_note(entry, mine, ["a"]).items == (OLD,)
    assert keys._find_note(entry, theirs, ["a"]) == note._replace(new=False)
    with pytest.raises(IdempotencyKeyReused):
        keys._find_note(entry, theirs, ["b"])
    # And somebody without an identity has a third one
    assert keys._find_note(entry, KEY, ["b"]).new
