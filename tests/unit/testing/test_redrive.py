"""Redriving in the service in memory: a call, the worker, queues and consumers, in one process."""

from datetime import timedelta

import pytest

from fanin import ItemFailed
from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.domain.batch import State
from fanin.testing import InMemoryService


@pytest.mark.parametrize("fifo", [False, True])
def test_a_large_redrive_is_finished_when_the_call_returns(fifo):
    # Given more failures than a call sends itself
    service = InMemoryService()
    tracker, queue = service.tracker, service.queue(fifo=fifo)
    with tracker.batch(user_key="mine") as batch:
        group = batch.add(1_200)
    tracker.fail(group, "x")
    parts = service._runtime.memory.parts
    notes = [FailureRow(n, item, "x", 1, 1, queue, IN_ROW) for n, item in enumerate(group)]
    parts.put_failures(batch.id, notes, expires_at=2**40)
    messages = {n: b'{"body": "%d", "group_id": "g"}' % n for n in range(1_200)}
    parts.put_messages(batch.id, messages, expires_at=2**40)
    # When they are redriven
    done = tracker.redrive(batch.id)
    # Then the worker has sent the rest
    assert (done.finished, done.items) == (True, 1_200)
    # And a consumer handles each once, under its new item
    seen: list[str] = []
    consume(service, tracker, queue, seen)
    assert sorted(map(int, seen)) == list(range(1_200))
    assert done.batch_id is not None
    new = tracker.status(done.batch_id).batch
    assert (new.state, new.retry_of, new.user_key) == (State.COMPLETE, batch.id, "mine")
    assert tracker.redrive(batch.id).items == 0
    assert [one.items for one in tracker.redrives(batch.id)] == [1_200, 0]


def consume(service: InMemoryService, tracker, queue: str, seen: list[str]) -> None:
    @tracker.sqs_handler
    def handle(message) -> None:
        seen.append(message.body)

    service.consume(queue, handle)
    service.advance(timedelta(minutes=1))


class Work:
    """A queue whose messages fail until they are mended."""

    def __init__(self, on_failure: str = "done") -> None:
        self.service = InMemoryService()
        self.tracker, self.queue = self.service.tracker, self.service.queue(max_receives=5)
        self.mended, self.done = False, list[str]()
        with self.tracker.batch(on_failure=on_failure) as batch:
            batch.send(self.queue, list("abc"), workers=1)
        self.batch = batch.id
        self.handle()

    def handle(self) -> None:
        def handler(message) -> None:
            if not self.mended:
                raise ItemFailed("no price")
            self.done.append(message.body)

        self.tracker.consumer(self.queue, handler, wait=0, skip_ended="look").poll()

    def dies(self, **selection: object) -> None:
        """A redrive dies when it is about to send."""

        def die(call: str, _moment: str) -> None:
            if call == "sqs.send_message_batch":
                raise KeyboardInterrupt

        self.service.on_call = die
        with pytest.raises(KeyboardInterrupt):
            self.tracker.redrive(self.batch, **selection)
        self.service.on_call = None

    def redrive(self) -> tuple[int, int]:
        self.mended = True
        found = self.tracker.redrive(self.batch)
        self.handle()
        return found.items, found.already


@pytest.mark.parametrize("on_failure", ["done", "hold"])
@pytest.mark.parametrize("selection", [{}, {"errors": ["no price"]}])
@pytest.mark.parametrize("later", [timedelta(minutes=3), timedelta(hours=3)])
def test_what_a_dead_redrive_has_not_sent_is_sent_by_the_next(on_failure, selection, later):
    # Given a redrive that dies before it sends, and a new batch that may be orphaned since
    work = Work(on_failure)
    work.dies(**selection)
    work.service.advance(later)

    assert work.redrive() == (3, 0)
    assert sorted(work.done) == list("abc")
    assert work.redrive() == (0, 0 if on_failure == "hold" else 3)


def test_held_items_that_a_dead_redrive_has_taken_are_held_again():
    work = Work("hold")
    work.dies()
    assert work.tracker.status(work.batch).batch.held == 0
    work.service.advance(timedelta(minutes=3))

    assert work.tracker.status(work.batch).batch.held == 3
    assert work.tracker.release(work.batch).released == 3


def test_what_a_cancelled_redrive_has_not_done_is_sent_again_and_nothing_else():
    # Given a redrive of which one message was handled before somebody cancels its new batch
    work = Work()
    first = work.tracker.redrive(work.batch)
    group = next(work.tracker.iter_missing(first.batch_id)).group
    work.tracker.ack(f"{group}:0")
    work.tracker.cancel(first.batch_id)
    # Then consumers drop its messages, and the next redrive sends those that were not done
    assert work.redrive() == (2, 1)
    assert len(work.done) == 2


def test_a_failure_without_a_message_does_not_hide_the_one_before():
    work = Work()
    (first, *_) = work.tracker.iter_failures(work.batch)
    work.tracker.fail(first.item, "by hand")

    assert next(work.tracker.iter_failures(work.batch)) == first
    assert work.redrive() == (3, 0)


def test_a_message_that_was_sent_fair_is_fair_when_it_is_sent_again():
    # Given a failed message on a standard queue, whose group is its batch
    service = InMemoryService()
    tracker, queue = service.tracker, service.queue()

    def give_up(message) -> None:
        raise ItemFailed("no price")

    with tracker.batch() as batch:
        batch.send(queue, ["a"], fair=True)
    tracker.consumer(queue, give_up, wait=0).poll()
    # When it is redriven
    assert tracker.redrive(batch.id).items == 1
    # Then it has the same group
    (message,) = service.sqs.receive_message(QueueUrl=queue, AttributeNames=["MessageGroupId"])["Messages"]
    assert message["Attributes"]["MessageGroupId"] == str(batch.id)
