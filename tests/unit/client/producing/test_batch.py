"""A batch as its producer uses it: items are added, their messages sent, failures named."""

import time
from functools import reduce

import pytest

from fanin import Message, Tracker
from fanin.adapters.backoff import Backoff
from fanin.client.producing.batch import TrackedBatch
from fanin.client.producing.resuming import DoneBefore, Stop
from fanin.domain.batch import State
from fanin.domain.diagnosis import SentItems
from fanin.errors import (
    BatchClosed,
    IdempotencyKeyReused,
    InvalidRequest,
    LimitReached,
    SendFailed,
    Throttled,
)
from tests.unit.client.conftest import received
from tests.unit.client.producing.conftest import REAL_WAIT, items_of, partly

REFUSE_BAD = partly(lambda entry: entry["MessageBody"].startswith("bad"), sender_fault=True)


class TestSend:
    def test_each_message_carries_an_item_of_the_batch(self, tracker, sqs, queue):
        with tracker.batch() as batch:
            sent = batch.send(queue, (f"row {n}" for n in range(25)))
        messages = received(sqs, queue)
        assert sent == 25
        assert {message["Body"] for message in messages} == {f"row {n}" for n in range(25)}
        assert tracker.ack(items_of(messages))[0].complete

    def test_a_character_that_sqs_does_not_take_is_refused_before_its_block_is_added(self, tracker, queue):
        with (
            pytest.raises(InvalidRequest, match=r"U\+0000 at 1, which no SQS message may carry"),
            tracker.batch() as batch,
        ):
            batch.send(queue, ["fine", "a\x00b"])
        assert batch.status().batch.items == 0

    def test_an_empty_stream_completes_at_once(self, tracker, queue):
        with tracker.batch() as batch:
            assert batch.send(queue, []) == 0
        assert batch.row.state is State.COMPLETE

    def test_progress_is_told_request_by_request(self, tracker, queue):
        told = []
        with tracker.batch() as batch:
            batch.send(queue, ["x"] * 25, progress=told.append)
        assert sorted(told) == [5, 10, 10]


@pytest.mark.parametrize("one", ["order-17", b"order-17", {"sku": 1, "price": 2}, Message("order-17")])
def test_one_message_instead_of_several_is_refused_and_adds_nothing(tracker, queue, one):
    with tracker.batch() as batch, pytest.raises(InvalidRequest, match=r"write \[message\]"):
        batch.send(queue, one)
    assert tracker.status(batch.id).batch.items == 0


def test_keys_that_are_no_function_are_refused_and_add_nothing(tracker, queue):
    with (
        tracker.batch() as batch,
        pytest.raises(InvalidRequest, match="keys must be a function of a message"),
    ):
        batch.send(queue, ["a"], keys=["a"])
    assert tracker.status(batch.id).batch.items == 0


class TestBounded:
    @pytest.fixture
    def done(self, tracker, sqs, queue, monkeypatch) -> list[int]:
        """How many messages a consumer has done, each time that the producer waited."""
        found: list[int] = []
        end = time.monotonic() + 30

        def consume(self, attempt, at_least=None):
            assert time.monotonic() < end, "the producer waits for what cannot come"
            time.sleep(0.002)  # the last messages may be on their way
            messages = received(sqs, queue)
            found.append(len(messages))
            tracker.ack(items_of(messages))

        monkeypatch.setattr(Backoff, "wait", consume)
        return found

    @pytest.fixture
    def answered(self, tracker, monkeypatch):
        """Makes a ledger that answers additions with these errors first."""
        add = tracker.ledger.add

        def answered(errors):
            left = iter(errors)

            def added(batch_id, count, *, key):
                for error in left:
                    raise error
                return add(batch_id, count, key=key)

            monkeypatch.setattr(tracker.ledger, "add", added)

        return answered

    @pytest.mark.parametrize(("limit", "messages"), [(1, 9), (3, 9), (8, 50)])
    def test_a_full_batch_holds_the_producer_until_items_are_done(
        self, tracker, sqs, queue, done, limit, messages
    ):
        with tracker.batch(limit=limit) as batch:
            assert batch.send(queue, map(str, range(messages))) == messages
        tracker.ack(items_of(received(sqs, queue)))
        assert max(done) <= limit
        assert batch.status().batch.state is State.COMPLETE

    def test_an_addition_that_is_throttled_for_good_is_given_up(
        self, tracker, queue, monkeypatch, longest_waits
    ):
        keys = []

        def throttled(batch_id, count, *, key):
            keys.append(key)
            raise Throttled("slow down")

        monkeypatch.setattr(tracker.ledger, "add", throttled)
        with pytest.raises(Throttled), tracker.batch() as batch:
            batch.send(queue, ["a"])
        assert batch.status().batch.state is State.CANCELLED
        # Then it was repeated eight times, under one key, after waits that grow
        assert (len(keys), len(set(keys))) == (9, 1)
        assert longest_waits == [0.5, 1, 2, 4, 8, 16, 20, 20]

    def test_a_throttled_addition_is_repeated_however_long_the_batch_was_full(
        self, tracker, queue, answered, longest_waits
    ):
        # Given a batch that is full for long, a ledger that throttles eight times, and all of it once more
        answered(2 * [*[LimitReached("full")] * 20, *[Throttled("slow down")] * 8])
        # When, Then
        with tracker.batch(limit=8) as batch:
            assert batch.send(queue, ["a"]) == 1
        assert len(longest_waits) == 56

    def test_a_full_batch_is_asked_again_no_sooner_than_it_says(
        self, tracker, queue, answered, longest_waits
    ):
        # Given a batch that is full twelve times, and says when to come back
        answered([LimitReached("full", retry_after=3)] * 12)
        # When, Then it is never given up
        with tracker.batch(limit=8) as batch:
            assert batch.send(queue, ["a"]) == 1
        assert longest_waits == [3, 3, 3, 4, 8, 16, 20, 20, 20, 20, 20, 20]

    @pytest.mark.parametrize(("limit", "bad"), [(1, 1), (4, 4), (8, 7)])
    @pytest.mark.usefixtures("done")
    def test_refused_messages_that_keep_it_full_end_the_wait(self, tracker, faulty, queue, limit, bad):
        # Given a batch that refused messages fill
        faulty.instead("send_message_batch", REFUSE_BAD)
        messages = [*(f"bad {n}" for n in range(bad)), *(f"good {n}" for n in range(20))]
        with pytest.raises(SendFailed, match="they keep the batch full") as raised:
            tracker.attach(tracker.open(limit=limit).batch_id).send(queue, iter(messages))
        # Then it says what was sent and what was not
        error = raised.value
        assert len(error.items) == bad
        begun = [f"bad {n}" for n in range(bad)] + [f"good {n}" for n in range(error.sent)]
        assert messages[len(begun) :][: len(error.unsent)] == [message.text for message in error.unsent]
        assert error.unsent

    @pytest.mark.usefixtures("done")
    def test_refused_messages_that_leave_room_end_nothing(self, tracker, faulty, queue):
        faulty.instead("send_message_batch", REFUSE_BAD)
        batch = tracker.attach(tracker.open(limit=8).batch_id)
        with pytest.raises(SendFailed, match="2 of 42 messages") as raised:
            batch.send(queue, ["bad", "bad", *map(str, range(40))])
        assert (raised.value.sent, raised.value.unsent) == (40, [])


class TestFailures:
    def test_what_the_queue_refuses_can_be_failed_at_once_with_its_message(self, tracker, faulty, queue):
        # Given a queue that refuses two messages of thirty for good
        faulty.instead("send_message_batch", REFUSE_BAD)
        messages = [Message(f"{'bad' * (n in {3, 25})}{n}", attributes={"n": n}) for n in range(30)]
        # When their items are failed as the answers come
        failed = pytest.raises(SendFailed, match=r"2 of 30 messages .*InternalError: sorry")
        with failed as raised, tracker.batch(on_error="leave") as batch:
            batch.send(queue, messages, refused=batch.fail)
        # Then each is kept as it would have been sent
        found = list(tracker.iter_failures(batch.id))
        assert [failure.item for failure in found] == sorted(
            raised.value.items, key=lambda i: int(i.split(":")[2])
        )
        assert {failure.source for failure in found} == {queue}
        assert {failure.reason for failure in found} == {"not sent: InternalError: sorry"}
        kept = [tracker.kept_message(failure.item) for failure in found]
        assert [one.body for one in kept] == ["bad3", "bad25"]
        assert [one.attributes["n"].value for one in kept] == ["3", "25"]
        assert batch.status().batch.failed == 2
        assert len(received(faulty, queue)) == 28

    def test_a_queue_that_is_busy_is_waited_for_up_to_three_seconds(
        self, tracker, faulty, queue, longest_waits
    ):
        """A moment is too short: what is given up has to be sent again, or failed, by people."""
        faulty.instead("send_message_batch", partly(lambda entry: True))
        with pytest.raises(SendFailed), tracker.batch() as batch:
            batch.send(queue, ["a"])
        assert longest_waits == [0.1, 0.2, 0.4, 0.8, 1.6]
        assert batch.status().batch.state is State.CANCELLED


@pytest.fixture
def added(tracker, monkeypatch) -> list[int]:
    """How many items each call has added."""
    counts: list[int] = []
    add = tracker.ledger.add
    monkeypatch.setattr(tracker.ledger, "add", lambda b, n, *, key: counts.append(n) or add(b, n, key=key))
    return counts


@pytest.mark.parametrize(("limit", "messages", "blocks"), [(20, 12, [5, 5, 2]), (None, 10_001, [10_000, 1])])
def test_items_are_added_a_quarter_of_the_limit_or_ten_thousand_at_a_time(
    tracker, faulty, queue, added, limit, messages, blocks
):
    faulty.instead("send_message_batch", lambda real, arguments: {})
    with tracker.batch(limit=limit) as batch:
        assert batch.send(queue, ("a" for _ in range(messages))) == messages
    assert added == blocks


@pytest.mark.parametrize(
    "wrap", [str, lambda text: {"text": text}, Message], ids=["text", "object", "message"]
)
def test_it_reads_ahead_by_bytes_whatever_the_bodies_are(tracker, queue, added, monkeypatch, wrap):
    # Given room for 3,000 bytes, and bodies of more than a thousand
    monkeypatch.setattr("fanin.client.producing.batch._BLOCK_BYTES", 3_000)
    with tracker.batch() as batch:
        batch.send(queue, (wrap("ü" * 600) for _ in range(6)))
    assert added == [2, 2, 2]


def test_what_was_sent_is_noted_for_a_diagnosis(tracker, faulty, queue, monkeypatch):
    # Given a producer that was here before, and a message that the queue refuses
    noted = []
    monkeypatch.setattr(tracker, "note_sent", lambda batch_id, sent: noted.append((batch_id, sent)))
    batch = tracker.attach(tracker.open().batch_id)
    batch.add(5)
    faulty.instead("send_message_batch", REFUSE_BAD)
    with pytest.raises(SendFailed):
        batch.send(queue, ["a", "b", "bad", "c"], block=2)
    # Then it knows which items have messages, and in which queue
    assert noted == [(batch.id, SentItems(queue, 5, 7)), (batch.id, SentItems(queue, 8, 9))]


def test_it_shows_its_state_as_last_closed_or_cancelled(tracker):
    batch = tracker.attach(tracker.open().batch_id)
    assert batch.add(1, key="once") == batch.add(1, key="once")
    assert (batch.close().state, batch.row.state) == (State.CLOSED, State.CLOSED)
    assert (batch.cancel().state, batch.row.state) == (State.CANCELLED, State.CANCELLED)
    assert repr(batch) == f"TrackedBatch({batch.id}, cancelled)"
    assert batch.wait(timeout=0).batch.state is State.CANCELLED


@pytest.mark.parametrize(
    ("messages", "options", "expected"),
    [
        (["a"], {"block": 0}, "block must be a whole number from 1"),
        (["a"], {"workers": 0}, "workers must be a whole number from 1"),
        (["a"], {"workers": 2.5}, "workers must be a whole number from 1"),
        (["a"], {"workers": 1_001}, "workers must be a whole number from 1 to 1000"),
        (["a"], {"request_bytes": 2_000_000}, "request_bytes must be a whole number from 1 to 1048576"),
        (["a", {"when": object()}], {}, "body cannot be written as JSON: .*not JSON serializable"),
        (["a", "half \ud83d"], {}, "half of a surrogate pair at 5"),
        *(
            ([Message("a", attributes={"n": n})], {}, "must be text, bytes or a finite number, not")
            for n in (None, True, float("nan"))
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_in_plain_words(tracker, queue, messages, options, expected):
    with pytest.raises(InvalidRequest, match=expected), tracker.batch() as batch:
        batch.send(queue, messages, **options)
    assert batch.status().batch.state is State.CANCELLED


def test_a_body_that_is_nested_too_deeply_is_refused(tracker, queue):
    deep = reduce(lambda inner, _: {"a": inner}, range(100_000), {})
    with pytest.raises(InvalidRequest, match="cannot be written as JSON"), tracker.batch() as batch:
        batch.send(queue, [deep])


class TestKey:
    def test_a_producer_that_died_goes_on_with_the_same_items(self, tracker, sqs, queue):
        # Given a producer that dies in its third block, and a consumer that has done some of what was sent
        def rows(died):
            for n in range(35):
                if died and n == 25:
                    raise KeyboardInterrupt
                yield f"row {n}"

        def send(died=False):
            with tracker.batch(on_error="leave", key="import 7") as batch:
                return batch, batch.send(queue, rows(died), block=10, key="rows")

        with pytest.raises(KeyboardInterrupt):
            send(died=True)
        first = received(sqs, queue)
        done = {m["Body"]: m["MessageAttributes"]["fanin-item"]["StringValue"] for m in first}
        tracker.ack([done[f"row {n}"] for n in (0, 1, 2, 7, 19)])

        batch, sent = send()
        # Then each row has one item, what is done is not sent again, and the batch completes
        again = received(sqs, queue)
        items = {m["Body"]: m["MessageAttributes"]["fanin-item"]["StringValue"] for m in again}
        assert sent == 30
        assert items.keys() == {f"row {n}" for n in range(35)} - {f"row {n}" for n in (0, 1, 2, 7, 19)}
        assert all(items[body] == item for body, item in done.items() if body in items)
        assert batch.status().batch.items == 35
        assert tracker.ack(items_of(again))[0].complete

    @pytest.mark.parametrize("end", ["before it runs again", "between two blocks"])
    def test_nothing_is_sent_under_items_of_a_batch_that_has_ended_since(self, tracker, sqs, queue, end):
        # Given a producer that has added items and died
        batch = tracker.open(key="import 7")
        for number in range(2):
            tracker.add(batch.batch_id, 10, key=f"rows\0{number}")

        # When it runs again, and somebody ends the batch
        def rows():
            for n in range(20):
                if n == (0 if end.startswith("before") else 11):
                    tracker.cancel(batch.batch_id)
                yield f"row {n}"

        with (
            pytest.raises(BatchClosed, match=r"is cancelled .* nothing was sent under them"),
            tracker.batch(key="import 7") as again,
        ):
            again.send(queue, rows(), block=10, key="rows", workers=1)
        # Then no message went out after the end
        assert len(received(sqs, queue)) == (0 if end.startswith("before") else 10)

    def test_of_a_complete_batch_nothing_is_sent_again(self, tracker, sqs, queue):
        for done in (False, True):
            with tracker.batch(key="import 7") as batch:
                assert batch.send(queue, list("abc"), key="rows") == (0 if done else 3)
            tracker.ack(items_of(received(sqs, queue)))

    def test_other_messages_under_the_key_are_refused(self, tracker, queue):
        with tracker.batch() as batch:
            batch.send(queue, list("abc"), key="rows")
            with pytest.raises(IdempotencyKeyReused):
                batch.send(queue, list("abcd"), key="rows")

    def test_a_key_that_is_too_long_adds_nothing(self, tracker, queue):
        with tracker.batch() as batch, pytest.raises(InvalidRequest, match="key must be text of 1 to 100"):
            batch.send(queue, ["a"], key="k" * 101)
        assert batch.status().batch.items == 0


# A producer that stops says how far it came, and the next one begins there.


def resumed(tracker, queue, count, stop):
    """Send so many rows as a run does that may be one of several."""
    batch = tracker.attach(tracker.open(key="run").batch_id)
    sent = batch.send(
        queue,
        map(str, range(count)),
        block=7,
        workers=2,
        key="rows",
        stop=stop,
        progress=lambda _: setattr(stop, "asked", stop.stop_at is not None and stop.position >= stop.stop_at),
    )
    return batch, sent


class StopAt(Stop):
    def __init__(self, stop_at=None, skip=0):
        super().__init__(skip)
        self.stop_at = stop_at


@pytest.mark.parametrize("at", [1, 7, 8, 39])
def test_two_runs_send_each_message_once_wherever_the_first_one_stops(tracker, sqs, queue, at):
    # Given a run that stops
    first = StopAt(at)
    _, sent = resumed(tracker, queue, 40, first)
    assert sent == first.position >= at
    # When the next one skips what that one has sent
    second = StopAt(skip=first.position)
    batch, rest = resumed(tracker, queue, 40, second)
    # Then all are sent once, and each has its item
    assert (sent + rest, second.position) == (40, 40)
    messages = received(sqs, queue)
    assert sorted(int(message["Body"]) for message in messages) == list(range(40))
    assert len(set(items_of(messages))) == 40
    assert batch.status().batch.items == 40
    assert batch.close().state is State.CLOSED


def test_a_wait_that_nobody_stops_is_as_long_as_it_should_be():
    slept = []
    Stop().wait(1.7, slept.append)
    assert sum(slept) == pytest.approx(1.7)
    Stop().wait(0, slept.append)
    assert sum(slept) == pytest.approx(1.7)


def test_ctrl_c_while_a_batch_is_full_stops_within_two_seconds(tracker, queue, monkeypatch):
    # Given a producer that waits twenty seconds for room, and is asked to stop at its second look
    monkeypatch.setattr(Backoff, "wait", REAL_WAIT)
    stop, slept = Stop(), []

    def sleep(seconds):
        slept.append(seconds)
        stop.asked = len(slept) == 2

    patient = Backoff(base=20, cap=20, sleep=sleep, fraction=lambda: 1.0)
    batch = TrackedBatch(tracker, tracker.open(limit=8), lambda: tracker.sqs, backoff=patient)
    sent = batch.send(queue, map(str, range(100)), stop=stop, key="rows")
    assert sent == stop.position == 8
    assert (len(slept), sum(slept) <= 2) == (2, True)


def test_it_tells_what_is_done_in_all_groups():
    # Given a batch of two groups, in which single items and whole ends are done
    tracker = Tracker.in_memory()
    batch = tracker.open()
    first, second = tracker.add(batch.batch_id, 100), tracker.add(batch.batch_id, 50)
    done = [*first[0:3], first[70], *first[98:100], second[0], *second[40:50]]
    tracker.ack(done)
    before = DoneBefore(tracker, tracker.status(batch.batch_id).batch)
    # When items are added and done after that
    later = tracker.add(batch.batch_id, 2)
    tracker.ack(later)
    # Then it tells the first from the second
    assert [item for item in (*first, *second, *later) if item in before] == done


def test_of_a_new_batch_nothing_is_done():
    tracker = Tracker.in_memory()
    batch = tracker.open()
    before = DoneBefore(tracker, batch)
    assert [item for item in tracker.add(batch.batch_id, 3) if item in before] == []
