"""Putting work in with a key: its slots hold, and it is in once, however late the put is repeated."""

from __future__ import annotations

import pytest

from fanin.app.buffers.put_keys import PutKeys
from fanin.app.buffers.slots import MARGIN_MS, SEND_MS
from fanin.app.ports.channels import Outgoing
from fanin.domain.acks import Failure
from fanin.domain.batch import State
from fanin.domain.buffer import Accepted
from fanin.domain.principals import IdempotencyKey
from fanin.errors import ChannelRefused, IdempotencyKeyReused, LimitReached, ServiceUnavailable, Throttled
from tests.lost_answers import LostAnswers
from tests.stateful.fuse import Fuse
from tests.stateful.scheduler import Crash as Died
from tests.unit.app.buffers.conftest import Town
from tests.unit.app.conftest import Crash, World

HOUR = 3_600_000


@pytest.fixture(autouse=True)
def _jobs(world: World, town: Town) -> None:
    world.memory.queues.retention = 3_600
    town.process().define("jobs", 2)


def fail(error: Exception) -> None:
    raise error


def die_before_sending(world: World, town: Town, *payloads: str, key: str | None = None) -> None:
    """Put work in, and die between its slots and its messages."""
    world.crash_at("channels.send", "before")
    with pytest.raises(Crash):
        town.process().put("jobs", payloads, key=key)


def batches(world: World) -> list[State]:
    return [row.state for row in world.memory.batches._rows.values()]


class TestOnce:
    def test_a_process_behind_a_new_definition_goes_on_in_the_new_queue(
        self, world: World, town: Town
    ) -> None:
        # Given a process that remembers a buffer, which is deleted and defined again
        behind = town.process()
        behind.status("jobs")
        town.process().delete("jobs")
        town.process().define("jobs", 2)
        # And a put into the new one that died between its slots and its messages
        die_before_sending(world, town, "a", key="order-7")

        # When that process repeats the put
        behind.put("jobs", ["a"], key="order-7")

        # Then the work is in the new queue
        assert town.messages() == ["a"]
        assert town.take() == ["a"]

    def test_a_repeat_sends_nothing_again(self, town: Town) -> None:
        first = town.process().put("jobs", ["a", "b"], key="order-7")

        assert town.process().put("jobs", ["a", "b"], key="order-7") == first

        assert town.messages() == ["a", "b"]
        assert town.take() == ["a", "b"]

    def test_a_repeat_after_the_work_was_done_puts_nothing_in(self, town: Town) -> None:
        first = town.process().put("jobs", ["a"], key="order-7")
        assert town.take() == ["a"]

        assert town.process().put("jobs", ["a"], key="order-7") == first
        assert town.process().status("jobs").pending == 0

    def test_a_repeat_is_known_after_the_buffer_has_changed_its_batch(self, town: Town) -> None:
        first = town.process().put("jobs", ["a"], key="order-7")
        assert town.take() == ["a"]
        town.process().define("jobs", 3)
        town.process().put("jobs", ["b"])

        assert town.process().put("jobs", ["a"], key="order-7") == first
        assert town.take() == ["b"]

    @pytest.mark.parametrize("payloads", [["a"], ["a", "c"], ["b", "a"], ["a", "b", "c"]])
    def test_a_key_stands_for_its_payloads(self, town: Town, payloads: list[str]) -> None:
        town.process().put("jobs", ["a", "b"], key="order-7")

        with pytest.raises(IdempotencyKeyReused, match="order-7"):
            town.process().put("jobs", payloads, key="order-7")
        assert town.take() == ["a", "b"]

    def test_a_key_stands_for_its_payloads_before_they_are_in(self, world: World, town: Town) -> None:
        die_before_sending(world, town, "a", key="order-7")

        with pytest.raises(IdempotencyKeyReused):
            town.process().put("jobs", ["b"], key="order-7")

    def test_keys_of_a_deleted_buffer_are_forgotten(self, town: Town) -> None:
        town.process().put("jobs", ["a"], key="order-7")
        town.process().delete("jobs")
        town.process().define("jobs", 2)

        town.process().put("jobs", ["a"], key="order-7")

        assert town.take() == ["a"]

    def test_work_that_was_dropped_with_its_batch_is_put_in_again(self, town: Town) -> None:
        buffers = town.process()
        buffers.put("jobs", ["a"], key="order-7")
        buffers._ledger.cancel(buffers.list().buffers[0].batch_id)

        buffers.put("jobs", ["a"], key="order-7")

        assert town.take() == ["a"]

    def test_slots_whose_batch_was_cancelled_are_taken_anew(self, world: World, town: Town) -> None:
        die_before_sending(world, town, "a", key="order-7")
        buffers = town.process()
        buffers._ledger.cancel(buffers.list().buffers[0].batch_id)

        buffers.put("jobs", ["a"], key="order-7")

        assert town.take() == ["a"]
        assert batches(world) == [State.CANCELLED, State.OPEN]

    def test_work_that_was_done_before_its_put_was_answered_is_in(self, world: World, town: Town) -> None:
        # Given a put that dies after its messages are sent, and whose work is done
        world.at("channels.send", "after", lambda: None)
        world.crash_at("channels.send", "after")
        with pytest.raises(Crash):
            town.process().put("jobs", ["a", "b"], key="order-7")
        assert town.take() == ["a", "b"]

        # When it is repeated, soon or late, then nothing is put in
        town.process().put("jobs", ["a", "b"], key="order-7")
        assert town.messages() == []
        assert town.process().status("jobs").pending == 0

    def test_a_repeat_sends_those_that_were_not_sent(self, world: World, town: Town) -> None:
        # Given a put that dies between its messages, of which the first is worked on
        world.crash_at("channels.send", "after")
        with pytest.raises(Crash):
            town.process().put("jobs", ["a", "b"], key="order-7")
        assert town.take() == ["a"]

        town.process().put("jobs", ["a", "b"], key="order-7")

        assert town.messages() == ["b"]
        assert town.take() == ["b"]

    @pytest.mark.parametrize("late", [0, SEND_MS + 1, 3 * HOUR])
    def test_a_producer_may_die_at_every_step_and_repeat_itself_soon_or_late(
        self, world: World, town: Town, late: int
    ) -> None:
        fuse = Fuse()
        world.memory.accesses._on_call = fuse.on_call
        for step in range(100):
            # Given a buffer with a mark, and a producer that dies at one step of its put, or does not
            name, died = f"jobs-{step}", False
            town.process().define(name, 2)
            town.process().put(name, ["x"])
            town.take(name)
            world.clock.advance(60_000)
            try:
                fuse.burn(step, lambda: town.process().put(name, ["a", "b"], key="order-7"))  # noqa: B023
            except Died:
                died = True

            # When it is repeated, then its work is in, and no slot stays leaked
            world.clock.advance(late)
            town.process().put(name, ["a", "b"], key="order-7")
            assert {"a", "b"} <= set(town.take(name)), step
            assert town.process().status(name).pending == 0
            if not died:
                break
        assert 12 < step < 99


class TestFailing:
    def test_slots_are_not_given_up_that_another_call_with_the_key_sent_for(
        self, world: World, town: Town
    ) -> None:
        # Given two calls with one key, of which the second cannot send
        def second() -> None:
            world.at("channels.send", "before", lambda: fail(ServiceUnavailable("no queue")))
            with pytest.raises(ServiceUnavailable):
                town.process().put("jobs", ["a"], key="order-7")

        world.at("channels.send", "before", second)
        town.process().put("jobs", ["a"], key="order-7")

        # Then the work that the first was told is in, is in
        assert world.happened
        assert town.take() == ["a"]

    def test_a_repeat_that_cannot_send_takes_nothing_back(self, world: World, town: Town) -> None:
        town.process().put("jobs", ["a"], key="order-7")

        world.at("channels.send", "before", lambda: fail(ServiceUnavailable("no queue")))
        town.process().put("jobs", ["a"], key="order-7")

        assert town.take() == ["a"]

    def test_a_queue_that_is_gone_refuses_and_leaves_the_slots_to_a_repeat(
        self, world: World, town: Town
    ) -> None:
        queue = town.process().list().buffers[0].queue
        del world.memory.channels.queues[queue]
        with pytest.raises(ChannelRefused):
            town.process().put("jobs", ["a"], key="order-7")

        world.memory.channels.queues[queue] = []
        town.process().put("jobs", ["a"], key="order-7")

        assert town.take() == ["a"]

    def test_a_put_that_takes_too_long_is_not_accepted(self, world: World, town: Town) -> None:
        world.at("channels.send", "before", lambda: world.clock.advance(SEND_MS + 1))

        with pytest.raises(Throttled, match="again"):
            town.process().put("jobs", ["a"], key="order-7")

        town.process().put("jobs", ["a"], key="order-7")
        assert town.take() == ["a"]  # both messages stand for one item, and one is handed out


class TestAfterRetention:
    """A repeat sends again only what is neither finished nor possibly still in the queue."""

    def put_two(self, world: World, town: Town) -> Accepted:
        """Put two payloads in, and finish the first."""
        first = town.process().put("jobs", ["a", "b"], key="order-7")
        world.ledger.ack([first.items[0]])
        return first

    def expire(self, world: World) -> None:
        """Let so much time pass that no message can exist."""
        world.clock.advance(HOUR + MARGIN_MS)

    def test_what_is_done_is_not_put_in_again_with_what_was_lost(self, world: World, town: Town) -> None:
        # Given a put of two payloads, of which one is done, and the message of the other has expired
        first = self.put_two(world, town)
        self.expire(world)
        assert town.messages() == []

        # When it is repeated, then only the other is put in, and the answer names the item that it has now
        again = town.process().put("jobs", ["a", "b"], key="order-7")
        assert town.messages() == ["b"]
        assert again.items[0] == first.items[0]
        assert again.items[1] not in first.items
        assert town.process().put("jobs", ["a", "b"], key="order-7").items == again.items
        assert town.process().status("jobs").pending == 1
        assert town.take() == ["b"]

    def test_what_was_reclaimed_is_put_in_again_alone(self, world: World, town: Town) -> None:
        # Given lost work whose slot a put that found the buffer full has reclaimed
        first = self.put_two(world, town)
        with pytest.raises(LimitReached):
            town.process().put("jobs", ["x", "y"])
        self.expire(world)
        town.process().put("jobs", ["x", "y"])
        assert town.take() == ["x", "y"]

        again = town.process().put("jobs", ["a", "b"], key="order-7")

        assert town.take() == ["b"]
        assert again.items[0] == first.items[0]

    def test_what_its_consumer_gave_up_is_finished(self, world: World, town: Town) -> None:
        # Given work of which one part died as a dead letter, and the other is done
        first = self.put_two(world, town)
        world.ledger.fail([Failure(first.items[1], "received 5 times from jobs without success")])
        self.expire(world)

        # When its put is repeated, then nothing is put in
        assert town.process().put("jobs", ["a", "b"], key="order-7").items == first.items
        assert town.messages() == []
        assert town.process().status("jobs").pending == 0

    def test_what_may_still_be_in_the_queue_is_not_put_in_again(self, world: World, town: Town) -> None:
        first = self.put_two(world, town)
        world.clock.advance(HOUR - 1)

        assert town.process().put("jobs", ["a", "b"], key="order-7").items == first.items
        world.clock.advance(1)
        assert town.process().put("jobs", ["a", "b"], key="order-7").items != first.items

    def test_what_is_lost_again_is_put_in_again(self, world: World, town: Town) -> None:
        self.put_two(world, town)
        for _ in range(3):
            self.expire(world)
            town.process().put("jobs", ["a", "b"], key="order-7")
            assert town.messages() == ["b"]

        assert town.process().status("jobs").pending == 1
        assert town.take() == ["b"]

    def test_a_repeat_may_die_at_every_step(self, world: World, town: Town) -> None:
        fuse = Fuse()
        world.memory.accesses._on_call = fuse.on_call
        for step in range(100):
            # Given a put of which one part is done, and one lost, and a repeat that dies at some step
            name, died = f"jobs-{step}", False
            town.process().define(name, 2)
            first = town.process().put(name, ["a", "b"], key="order-7")
            world.ledger.ack([first.items[0]])
            self.expire(world)
            try:
                fuse.burn(step, lambda: town.process().put(name, ["a", "b"], key="order-7"))  # noqa: B023
            except Died:
                died = True

            # When it is repeated, then the lost part is in, and what is done is not
            town.process().put(name, ["a", "b"], key="order-7")
            assert set(town.take(name)) == {"b"}, step
            assert town.process().status(name).pending == 0
            if not died:
                break
        assert 12 < step < 99

    def test_work_that_is_done_while_it_is_given_up_is_finished(self, world: World, town: Town) -> None:
        # Given a put that dies after its message is sent, and slots that are too old then
        world.crash_at("channels.send", "after")
        with pytest.raises(Crash):
            town.process().put("jobs", ["a"], key="order-7")
        town.process().put("jobs", ["x"])
        world.clock.advance(SEND_MS + 1)

        # When a consumer does the work just before a repeat gives it up
        world.at("parts.update_failures", "before", lambda: taken.extend(town.take()))
        taken = list[str]()
        town.process().put("jobs", ["a"], key="order-7")

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

    def test_work_that_was_done_before_is_not_put_in_again(self, world: World, town: Town) -> None:
        # Given a put that dies after its messages are sent, whose work is done, and another batch
        world.at("channels.send", "after", lambda: None)
        world.crash_at("channels.send", "after")
        with pytest.raises(Crash):
            town.process().put("jobs", ["a", "b"], key="order-7")
        assert town.take() == ["a", "b"]
        self.renew(town)

        # When it is repeated, then nothing is put in
        again = town.process().put("jobs", ["a", "b"], key="order-7")
        assert town.messages() == []
        assert town.process().put("jobs", ["a", "b"], key="order-7") == again

    def test_work_that_was_not_done_before_is_put_in_alone(self, world: World, town: Town) -> None:
        # Given a put that dies between its messages; the work of the first is done, and the batch cancelled
        world.crash_at("channels.send", "after")
        with pytest.raises(Crash):
            town.process().put("jobs", ["a", "b"], key="order-7")
        assert town.take() == ["a"]
        town.process()._ledger.cancel(town.process().list().buffers[0].batch_id)
        self.renew(town)

        town.process().put("jobs", ["a", "b"], key="order-7")

        assert town.take() == ["b"]
        assert town.process().status("jobs").pending == 0

    def test_a_put_that_took_no_slots_before_takes_them_in_the_new_batch(
        self, world: World, town: Town
    ) -> None:
        world.crash_at("batches.allocate_once", "before")
        with pytest.raises(Crash):
            town.process().put("jobs", ["a"], key="order-7")
        self.renew(town)

        town.process().put("jobs", ["a"], key="order-7")

        assert town.take() == ["a"]

    def test_work_in_a_batch_that_came_after_the_note_is_known_too(self, world: World, town: Town) -> None:
        # Given a put that finds its batch closed, so goes to another one, and dies when it has sent
        slow = town.process()
        slow.status("jobs")
        self.renew(town)
        world.crash_at("channels.send", "after")
        with pytest.raises(Crash):
            slow.put("jobs", ["a"], key="order-7")
        assert town.take() == ["a"]

        # When the batch changes once more, then a repeat puts nothing in
        self.renew(town)
        town.process().put("jobs", ["a"], key="order-7")
        assert town.messages() == []

    def test_an_answer_from_an_earlier_batch_leaves_the_marks_alone(self, world: World, town: Town) -> None:
        # Given a key whose work has a high number in an earlier batch
        for _ in range(5):
            town.process().put("jobs", ["x"])
            town.take()
        world.crash_at("channels.send", "after")
        with pytest.raises(Crash):
            town.process().put("jobs", ["a"], key="order-7")
        assert town.take() == ["a"]
        self.renew(town)
        world.clock.advance(HOUR)

        town.process().put("jobs", ["a"], key="order-7")

        entry = town.process()._records.refresh("jobs")
        assert all(items <= 1 for _, items in entry.marks)

    def test_costs_no_write_more(self, world: World, town: Town) -> None:
        process = town.process()
        process.put("jobs", ["x"], key="order-6")
        before = world.accesses.writes.copy()

        process.put("jobs", ["a"], key="order-7")

        assert world.accesses.writes - before == {"records.put": 2, "batches.allocate_once": 2}

    def test_a_note_of_an_earlier_version_is_gone_on_with(self, world: World, town: Town) -> None:
        # Given a put of an earlier version, which took slots and died before it sent their messages
        entry = town.process()._records.refresh("jobs")
        keys = PutKeys(world.ports)
        note = keys.find(entry, IdempotencyKey.of("order-7"), ["a"])
        value = {"digest": note.digest, "round": 0, "group": None, "sent_at": 0, "given_up": None}
        until = world.clock.at // 1000 + 86_400
        world.ports.records.put(str(entry.born), "put/order-7", value, expires_at=until)
        group = world.ledger.add(entry.buffer.batch_id, 1, key="order-7")

        # When it is repeated, then its slots are used
        assert town.process().put("jobs", ["a"], key="order-7").items == tuple(group)
        assert town.take() == ["a"]


class TestLate:
    """A message that follows its slot too late would outlive it."""

    def test_work_put_in_late_under_its_key_is_not_given_up(self, world: World, town: Town) -> None:
        # Given slots of a key without a message, and a mark above them
        die_before_sending(world, town, "a", key="order-7")
        town.process().put("jobs", ["b"])
        assert town.take() == ["b"]

        # When the put is repeated shortly before the slots would count as leaked
        world.clock.advance(HOUR - 60_000)
        town.process().put("jobs", ["a"], key="order-7")
        world.clock.advance(MARGIN_MS + 120_000)
        town.process().put("jobs", ["c"])

        # Then a full buffer is full
        with pytest.raises(LimitReached):
            town.process().put("jobs", ["d"])
        assert town.take() == ["a", "c"]

    def test_work_put_in_late_into_a_buffer_that_drains_is_not_given_up(
        self, world: World, town: Town
    ) -> None:
        # Given slots of a key in a buffer whose batch closes then
        die_before_sending(world, town, "a", key="order-7")
        town.process().define("jobs", 3)

        # When the put is repeated late, then the slots are given up for others, and not later
        world.clock.advance(HOUR - 60_000)
        town.process().put("jobs", ["a"], key="order-7")
        world.clock.advance(MARGIN_MS + 120_000)
        town.process().put("jobs", ["b"])
        assert town.take() == ["a", "b"]

    def test_work_whose_slots_were_given_up_is_put_in_under_its_key(self, world: World, town: Town) -> None:
        # Given slots that a put that found the buffer full has given up
        die_before_sending(world, town, "a", "b", key="order-7")
        with pytest.raises(LimitReached):
            town.process().put("jobs", ["c"])
        world.clock.advance(HOUR + MARGIN_MS)
        town.process().put("jobs", ["c"])
        assert town.take() == ["c"]

        # When the put of that key is repeated, then its work is in, once
        first = town.process().put("jobs", ["a", "b"], key="order-7")
        assert town.process().put("jobs", ["a", "b"], key="order-7") == first
        assert town.take() == ["a", "b"]

    def test_slots_that_are_too_old_make_room_for_those_that_replace_them(
        self, world: World, town: Town
    ) -> None:
        die_before_sending(world, town, "a", "b", key="order-7")
        with pytest.raises(LimitReached):
            town.process().put("jobs", ["c"])
        world.clock.advance(SEND_MS + 1)

        town.process().put("jobs", ["a", "b"], key="order-7")

        assert town.take() == ["a", "b"]

    def test_whoever_is_overtaken_by_a_later_repeat_is_not_accepted_by_mistake(
        self, world: World, town: Town
    ) -> None:
        # Given a call that stops between its messages and the note of them, while a mark is made
        die_before_sending(world, town, "a", key="order-7")
        town.process().put("jobs", ["b"])
        town.take()

        def later() -> None:
            world.clock.advance(SEND_MS - 1)
            town.process().put("jobs", ["a"], key="order-7")

        world.clock.advance(10)
        world.at("channels.send", "after", later)
        town.process().put("jobs", ["a"], key="order-7")

        # Then both were told of work that is in, and the message of the first is void
        assert world.happened
        assert town.take() == ["a"]

    def test_slots_that_an_earlier_version_took_are_not_given_up(self, world: World, town: Town) -> None:
        # Given a put of a version that kept no notes, which was accepted
        entry = town.process()._records.refresh("jobs")
        group = world.ledger.add(entry.buffer.batch_id, 1, key="order-7")
        world.memory.channels.send(
            [Outgoing(entry.buffer.queue, "a", {"fanin-item": group[0]})]  # as that version sends it
        )
        town.process().put("jobs", ["b"])
        assert set(town.messages()) == {"a", "b"}
        world.clock.advance(SEND_MS + 1)

        # When it is repeated late into the full buffer, then it is not accepted, and its work stays
        with pytest.raises(LimitReached):
            town.process().put("jobs", ["a"], key="order-7")
        assert town.take() == ["a", "b"]


class TestLostAnswers:
    @pytest.mark.parametrize(
        "call", ["records.put", "batches.allocate_once", "channels.send", "directory.put", "words.clear"]
    )
    def test_a_keyed_put_holds_whatever_the_sdk_repeats_while_another_repeats_the_put(
        self, world: World, town: Town, call: str
    ) -> None:
        def other() -> None:
            town.process().put("jobs", ["a", "b"], key="order-7")

        LostAnswers(world.memory).lose(call, other)
        town.process().put("jobs", ["a", "b"], key="order-7")

        assert set(town.take()) == {"a", "b"}
        assert town.process().status("jobs").pending == 0
