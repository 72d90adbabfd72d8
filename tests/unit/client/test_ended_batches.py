"""What a process knows of the ends of batches.

Messages of ended batches are dropped without doing their work.
"""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fanin import ItemFailed, ReceivedMessage, Tracker
from fanin.client import ended_batches
from fanin.client.ended_batches import EndedBatches, Heard, Skipping
from fanin.domain.batch import Mode, State
from fanin.domain.marks import Count, ItemRange, Mark, Marked, Receipt
from fanin.errors import BatchGone, BatchNotFound, InvalidRequest, ServiceUnavailable
from fanin.names import ATTRIBUTE_REPLY_TO, METRIC_SKIPPED
from fanin.testing import InMemoryService


def told(*receipts: Receipt) -> Marked:
    return Marked(receipts)


def receipt(batch_id: int, state: State) -> Receipt:
    return Receipt(batch_id, "", state, complete=state is State.COMPLETE)


@pytest.mark.parametrize("state", State)
def test_a_receipt_tells_of_an_end(state):
    ended = EndedBatches(lambda: 0.0)
    ended.learn([], told(receipt(7, state)))
    assert ended.of(7).ended is state.terminal
    assert ended.of(7).complete is (state is State.COMPLETE)


def test_a_refusal_tells_of_a_batch_that_is_gone():
    ended = EndedBatches(lambda: 0.0)
    gone, unknown = BatchGone("removed"), BatchNotFound("no such batch")
    ended.learn(
        ["7:g:0", Count(8, 1), "9:g:0", "x:g:0"], Marked((), refused={0: gone, 1: gone, 2: unknown, 3: gone})
    )
    assert [n for n in range(10) if ended.of(n).ended] == [7, 8]
    assert not ended.of(7).complete


def test_a_complete_batch_that_is_gone_was_complete():
    ended = EndedBatches(lambda: 0.0)
    ended.learn([], told(receipt(7, State.COMPLETE)))
    ended.gone(7)
    assert ended.of(7).complete


def test_an_end_is_for_ever_even_if_an_older_answer_comes_after_it():
    ended = EndedBatches(lambda: 0.0)
    ended.learn([], told(receipt(7, State.CANCELLED), receipt(7, State.OPEN)))
    assert ended.of(7).ended
    assert ended.of(7).answered is None


def test_the_age_is_that_of_the_last_answer_about_a_live_batch():
    now = 10.0
    ended = EndedBatches(lambda: now)
    assert ended.of(7).answered is None
    ended.learn([], told(receipt(7, State.OPEN)))
    now = 12.5
    ended.learn([], told(receipt(7, State.CLOSED)))
    assert ended.of(7).answered == 12.5


def test_only_so_many_are_remembered(monkeypatch):
    monkeypatch.setattr(ended_batches, "_MOST", 3)
    ended = EndedBatches(lambda: 0.0)
    ended.learn([], told(*(receipt(n, State.CANCELLED) for n in range(5))))
    assert [n for n in range(5) if ended.of(n).ended] == [2, 3, 4]
    ended.learn([], told(receipt(2, State.CANCELLED), receipt(9, State.CLOSED)))
    assert [n for n in range(10) if ended.of(n) != Heard()] == [2, 4, 9]


def test_a_tracker_learns_from_every_answer():
    tracker = Tracker.in_memory()
    for end in (tracker.cancel, tracker.close):
        batch = tracker.open()
        assert not tracker.ended.of(batch.batch_id).ended
        end(batch.batch_id)
        assert tracker.ended.of(batch.batch_id).ended
    other = tracker.open()
    tracker.ledger.cancel(other.batch_id)
    tracker.status(other.batch_id)
    assert tracker.ended.of(other.batch_id).ended


PROOFS: list[dict[str, Any]] = [{"first": 1}, {"duplicates": ("7:g:0",)}, {"held": 1}]
"""What only the receipt of an exact batch says."""


@pytest.mark.parametrize(
    ("what", "known"),
    [
        *((what, known) for what in PROOFS for known in (None, Mode.EXACT)),
        *((what, known) for what in ({"ranged": 1}, {"late": 1}) for known in (None, *Mode)),
    ],
)
def test_a_complete_batch_has_ended_if_it_is_exact_for_certain(what, known):
    """An estimated batch may be complete before all of its work is done."""
    ended, exact = EndedBatches(lambda: 0.0), what in PROOFS
    row = Tracker.in_memory().open()
    if known is not None:
        ended.note(replace(row, mode=known))

    marks = [ItemRange("7:g")] if "ranged" in what else ["7:g:0"]
    ended.learn(marks, told(Receipt(row.batch_id, "", State.COMPLETE, complete=True, **what)))

    assert ended.of(row.batch_id).ended is (exact or known is Mode.EXACT)
    assert ended.of(row.batch_id).doubtful is (known is None and not exact)
    ended.note(replace(row, state=State.COMPLETE))
    assert ended.of(row.batch_id).ended
    assert not ended.of(row.batch_id).doubtful


@pytest.mark.parametrize("gone", [True, False])
def test_a_batch_whose_end_is_in_doubt_is_asked_about_once(gone):
    """Else each of its messages would read it once more."""
    now = 10.0
    ended = EndedBatches(lambda: now)
    ended.learn([ItemRange("7:g")], told(Receipt(7, "", State.COMPLETE, complete=True, ranged=1)))
    assert ended.of(7).doubtful
    # When it turns out that it was removed, or no answer comes
    if gone:
        ended.gone(7)
    else:
        ended.silent(7)
    now = 12.5
    # Then it has ended, or is believed to live for a while
    assert not ended.of(7).doubtful
    assert (ended.of(7).ended, ended.of(7).answered) == ((True, None) if gone else (False, 10.0))


@pytest.mark.parametrize("state", [State.CANCELLED, State.TIMED_OUT, State.ORPHANED])
def test_of_an_estimated_batch_every_other_end_is_one(state):
    ended, row = EndedBatches(lambda: 0.0), Tracker.in_memory().open(mode="estimated")
    ended.note(replace(row, state=state))
    assert ended.of(row.batch_id).ended


def another(service: InMemoryService) -> Tracker:
    """The tracker of another process: it has learned nothing yet."""
    return Tracker(service.services, lambda: service.sqs, service.tracker._ack_queue_url, service.clock)


class Work:
    """A handler that keeps what it did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def __call__(self, message: ReceivedMessage) -> None:
        self.done.append(message.body)


@pytest.fixture
def queue_url(service: InMemoryService) -> str:
    return service.queue("rows")


@pytest.fixture
def work() -> Work:
    return Work()


def sent(service: InMemoryService, queue_url: str, count: int, **options: Any) -> int:
    with service.tracker.batch(**options) as batch:
        batch.send(queue_url, [str(n) for n in range(count)], workers=1)
    return batch.id


@pytest.mark.parametrize("fifo", [False, True])
def test_a_warm_consumer_does_at_most_one_of_fifty_that_remain(service, work, fifo):
    # Given a consumer of another process that has done ten messages of a batch, a while ago
    queue_url = service.queue("rows", fifo=fifo)
    batch_id = sent(service, queue_url, 60)
    consumer = another(service).consumer(queue_url, work, wait=0)
    assert consumer.poll() == 10
    service.advance(timedelta(seconds=5))

    service.tracker.cancel(batch_id)
    while consumer.poll():
        pass
    # Then it does one more, which tells it, and deletes the others
    assert len(work.done) <= 11
    assert (consumer.skipped, consumer.poll()) == (60 - len(work.done), 0)


def test_false_does_all_the_work(service, queue_url, work):
    service.tracker.cancel(sent(service, queue_url, 3))
    consumer = service.tracker.consumer(queue_url, work, wait=0, skip_ended=False)

    consumer.poll()

    assert (len(work.done), consumer.skipped) == (3, 0)


def test_look_reads_before_the_first_message_once_in_30_seconds(service, queue_url, work):
    # Given a consumer that acknowledges through the queue, and so gets no receipts
    batch_id = sent(service, queue_url, 40)
    consumer = another(service).consumer(queue_url, work, wait=0, via="queue", skip_ended="look")
    reads: list[str] = []
    service.on_call = lambda call, moment: reads.append(call) if moment == "before" else None
    consumer.poll()
    assert reads.count("batches.read") <= 2  # one look, and that of the function behind the ack queue
    # When the batch ends, and 30 seconds later
    service.tracker.cancel(batch_id)
    service.advance(timedelta(seconds=31))
    while consumer.poll():
        pass

    assert (len(work.done), consumer.skipped) == (10, 30)


@pytest.mark.parametrize(
    ("error", "skipped"),
    [(BatchGone("gone"), True), (BatchNotFound("?"), False), (ServiceUnavailable("?"), False)],
)
def test_a_look_that_fails_does_the_work_unless_the_batch_is_gone(error, skipped):
    def read(_: int) -> Any:
        raise error

    skipping = Skipping(EndedBatches(lambda: 0.0), read, "look")
    assert skipping.skips(message("7:g:0")) is skipped


def message(item: str | None, **attributes: str) -> ReceivedMessage:
    return ReceivedMessage("m", "body", item, attributes, None, 1, {})


@pytest.mark.parametrize(("age", "asks"), [(0.9, False), (1.0, True)])
def test_a_message_is_acknowledged_at_once_if_the_last_answer_is_a_second_old(age, asks):
    now = 10.0
    known = EndedBatches(lambda: now)
    known.learn([], Marked([Receipt(7, "", State.OPEN)]))
    now += age
    assert Skipping(known, lambda _: pytest.fail("read")).asks(message("7:g:0")) is asks


def ended(*batches: int) -> EndedBatches:
    known = EndedBatches(lambda: 0.0)
    known.learn([], Marked([Receipt(batch_id, "", State.CANCELLED) for batch_id in batches]))
    return known


def never(_: int) -> Any:
    raise AssertionError


def test_messages_without_an_item_and_of_scatters_are_never_dropped():
    skipping = Skipping(ended(7), never)
    assert skipping.skips(message("7:g:0"))
    assert not skipping.skips(message(None))
    assert not skipping.skips(message("x:g:0"))
    assert not skipping.skips(message("7:g:0", **{ATTRIBUTE_REPLY_TO: "queue"}))


def test_each_batch_is_logged_once(caplog):
    known = ended(7, 8)
    with caplog.at_level(logging.INFO, "fanin"):
        for skipping in (Skipping(known, never), Skipping(known, never)):
            for item in ("7:g:0", "7:g:1", "8:g:0"):
                skipping.skips(message(item))
    assert [record.args for record in caplog.records] == [(7,), (8,)]


def test_another_mode_is_refused_at_once():
    with pytest.raises(InvalidRequest, match='skip_ended must be True, False or "look", not'):
        Tracker.in_memory().sqs_handler(skip_ended="Look")


def test_a_lambda_handler_drops_them_counts_them_and_deletes_their_messages(service, queue_url, work, capsys):
    batch_id = sent(service, queue_url, 12)
    service.tracker.cancel(batch_id)

    service.consume(queue_url, service.tracker.sqs_handler(work))

    assert work.done == []
    assert capsys.readouterr().out.count(METRIC_SKIPPED) >= 2
    assert service.tracker.consumer(queue_url, work, wait=0).poll() == 0


def test_the_first_message_asks_only_where_an_answer_is_old_and_once_a_window(service, queue_url):
    """A plain window is acknowledged by one call, as ever."""
    sent(service, queue_url, 30)
    calls: list[str] = []

    def on_call(call: str, moment: str) -> None:
        if (call, moment) == ("words.clear", "before"):
            calls.append(call)

    def fails(message: ReceivedMessage) -> None:
        if message.body == "29":
            raise ItemFailed("no")

    consumer = another(service).consumer(queue_url, fails, wait=0)
    service.on_call = on_call
    counts = []
    for pause in (0, 0, 2):
        service.advance(timedelta(seconds=pause))
        before = len(calls)
        consumer.poll()
        counts.append(len(calls) - before)
    assert counts[2] > counts[1] == counts[0]


@pytest.mark.parametrize("mode", [True, "look"])
@pytest.mark.parametrize("fresh", [False, True])
def test_an_estimated_batch_that_is_complete_early_loses_no_work(service, queue_url, work, mode, fresh):
    # Given an estimated batch that is complete after ten of its thirty messages, because repeats were counted
    batch_id = sent(service, queue_url, 30, mode="estimated")
    consumer = another(service).consumer(queue_url, work, wait=0, skip_ended=mode)
    consumer.poll()
    service.tracker.ack([Count(batch_id, 20)])
    assert service.tracker.status(batch_id).batch.state is State.COMPLETE
    if fresh:
        consumer = another(service).consumer(queue_url, work, wait=0, skip_ended=mode)

    while consumer.poll():
        service.advance(timedelta(seconds=5))
    # Then each message was handled all the same
    assert (sorted(map(int, work.done)), consumer.skipped) == (list(range(30)), 0)


def test_a_batch_that_its_deadline_completed_is_read_once_and_its_messages_dropped(service, queue_url, work):
    # Given a batch that is complete with items missing, of which a new process gets late receipts only
    sent(service, queue_url, 40, deadline=timedelta(minutes=1), on_deadline="complete")
    service.advance(timedelta(minutes=3))
    consumer = another(service).consumer(queue_url, work, wait=0)

    while consumer.poll():
        pass

    assert (len(work.done), consumer.skipped) == (10, 30)


def test_a_look_without_an_answer_is_not_repeated_for_each_message():
    # Given a ledger that does not answer, and takes its time about it
    now, asked = 0.0, []

    def read(batch_id: int) -> Any:
        asked.append(batch_id)
        raise ServiceUnavailable("?")

    known = EndedBatches(lambda: now)
    for n in range(10):
        assert not Skipping(known, read, "look").skips(message(f"7:g:{n}"))
    assert asked == [7]

    now = 30.0
    Skipping(known, read, "look").skips(message("7:g:0"))
    assert asked == [7, 7]


NAMED: list[Mark] = ["1:g:0"]
RANGED: list[Mark] = [ItemRange("1:g")]


@pytest.mark.parametrize(
    ("marks", "receipt", "exact"),
    [
        (NAMED, Receipt(1, "", State.OPEN, first=1), True),
        (NAMED, Receipt(1, "", State.OPEN, duplicates=("1:g:0",)), True),
        (NAMED, Receipt(1, "", State.OPEN, ranged=1), False),
        (RANGED, Receipt(1, "", State.OPEN, ranged=1), None),
        (NAMED, Receipt(1, "", State.TIMED_OUT, late=1), None),
    ],
)
def test_a_receipt_tells_the_mode_where_it_can(marks, receipt, exact):
    known = EndedBatches(lambda: 0.0)
    known.learn(marks, Marked((receipt,)))
    assert known.of(1).exact is exact
