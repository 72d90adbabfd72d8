"""What handlers may do wrongly, played on the whole service: nothing is done that was not worked on."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from fanin.errors import BatchClosed, IdempotencyKeyReused, InvalidRequest, Throttled
from fanin.testing import Fault
from fanin.testing.service import START


async def works_later(_message: Any) -> None: ...


def yields(_message: Any) -> Any:
    yield


class Later:
    async def __call__(self, _message: Any) -> None: ...


@pytest.mark.parametrize("handle", [works_later, yields, partial(works_later), Later()])
def test_a_handler_that_returns_before_its_work_is_done_is_refused(service, handle):
    with pytest.raises(InvalidRequest, match="is async or a generator"):
        service.tracker.sqs_handler(handle)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_what_a_handler_leaves_to_be_awaited_is_not_done(service):
    queue = service.queue("work")
    with service.tracker.batch() as batch:
        batch.send(queue, ["a"])

    service.consume(queue, service.tracker.sqs_handler(lambda message: works_later(message)))  # noqa: PLW0108

    assert service.tracker.status(batch.id).done_min == 0


def test_a_run_that_adds_fewer_items_than_an_earlier_one_closes_nothing(service):
    # Given a handler that dies after it has added two pages, and sees but one when its message comes again
    work, rows = service.queue("work", max_receives=2), service.queue("rows")
    pages, errors = [["1", "2"], ["3"]], list[Exception]()

    def handle(message: Any) -> None:
        try:
            with service.tracker.batch(parent_item=message.item) as child:
                for page in pages:
                    child.send(rows, page)
                if len(pages) == 2:
                    raise RuntimeError(pages.pop())
        except IdempotencyKeyReused as error:
            errors.append(error)
            raise

    with service.tracker.batch() as batch:
        batch.send(work, ["a"])
    service.consume(work, service.tracker.sqs_handler(handle))
    # When it runs again
    service.advance(timedelta(minutes=5))
    # Then it is refused, and the item fails
    assert "an earlier run added 3 items" in str(errors[0])
    assert service.tracker.status(batch.id).batch.failed == 1


@pytest.mark.parametrize("key", [None, "mine"])
def test_a_child_that_ended_before_anything_was_added_swallows_nothing(service, key):
    # Given a handler that dies before it adds anything, so that its child ends empty at the deadline
    work = service.queue("work", max_receives=2, visibility_timeout=600)
    rows = service.queue("rows")
    handled, runs = list[str](), list[Any]()

    def handle(message: Any) -> None:
        runs.append(message)
        ends = START + timedelta(minutes=5) if key else timedelta(minutes=5)
        with service.tracker.batch(
            parent_item=message.item, deadline=ends, on_deadline="complete", key=key
        ) as child:
            if len(runs) == 1:
                raise RuntimeError("dies")
            child.send(rows, ["a", "b"])

    with service.tracker.batch() as batch:
        batch.send(work, ["1"])
    service.consume(work, service.tracker.sqs_handler(handle))
    service.consume(rows, service.tracker.sqs_handler(lambda message: handled.append(message.body)))
    # When its message comes again
    service.advance(timedelta(hours=1))
    # Then the work is done, or the item fails; with the key of the child that ended, there is no other
    row = service.tracker.status(batch.id).batch
    assert (row.state, row.failed, handled) == (
        ("complete", 0, ["a", "b"]) if key is None else ("complete", 1, [])
    )


def test_a_producer_that_comes_late_to_a_partial_end_is_told(service):
    # Given a producer that dies when it has added its items, and comes back after the deadline
    queue = service.queue("work")
    options = {"key": "import", "on_error": "leave", "deadline": START + timedelta(minutes=5)}

    def send() -> int:
        with service.tracker.batch(on_deadline="complete", **options) as batch:
            return batch.send(queue, ["a", "b"], key="rows", workers=1)

    service.on_call = Fault("sqs.send_message_batch", error=RuntimeError("dies"))
    with pytest.raises(RuntimeError, match="dies"):
        send()
    service.advance(timedelta(minutes=6))

    with pytest.raises(BatchClosed, match="without all its items"):
        send()


def test_attributes_may_be_handed_on_by_the_recipient_of_a_scatter(service):
    channel, rows = service.queue("channel", channel=True), service.queue("rows")
    service.tracker.scatters.start([channel], "x")
    batches = []

    def handle(message: Any) -> None:
        with service.tracker.batch() as batch:
            batch.send(rows, ["1", "2"], attributes=message.attributes)
        batches.append(batch.id)

    service.consume(channel, service.tracker.sqs_handler(handle))
    service.consume(rows, service.tracker.sqs_handler(lambda _message: None))

    assert service.tracker.status(batches[0]).batch.state == "complete"


def test_a_recipient_of_a_scatter_is_no_parent(service):
    channel = service.queue("channel", channel=True)
    service.tracker.scatters.start([channel], "x")
    (message,) = service.sqs.receive_message(QueueUrl=channel, MessageAttributeNames=["All"])["Messages"]

    with pytest.raises(InvalidRequest, match="waits for its reply"):
        service.tracker.open(parent_item=message["MessageAttributes"]["fanin-item"]["StringValue"])


def test_an_estimated_batch_goes_on_under_its_keys(service):
    queue = service.queue("work")
    for _ in range(2):
        batch = service.tracker.attach(service.tracker.open(mode="estimated", key="run").batch_id)
        assert batch.send(queue, ["a", "b"], key="rows") == 2

    assert batch.status().batch.items == 2


def test_a_callers_key_is_no_key_of_a_block(service):
    with service.tracker.batch() as batch:
        batch.send(service.queue("work"), ["a", "b"], key="import")
        batch.add(2, key="import/0")

    assert batch.status().batch.items == 4


def test_time_passes_for_a_thread_that_waits_within_a_wait_that_is_over(service):
    # Given a handler that sends, while SQS is busy, at the very moment until which the test waits
    work, rows = service.queue("work", visibility_timeout=60), service.queue("rows")
    tries = []

    def handle(message: Any) -> None:
        tries.append(message)
        if len(tries) == 1:
            raise RuntimeError("comes again in a minute")
        with service.tracker.batch() as batch:
            service.on_call = Fault("sqs.send_message_batch", error=Throttled("busy"))
            batch.send(rows, ["1"])

    with service.tracker.batch() as batch:
        batch.send(work, ["a"])
    service.consume(work, service.tracker.sqs_handler(handle))

    service.advance(timedelta(minutes=1))

    assert len(tries) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda tracker: tracker.batch(on_error="canceled").__enter__(),
        lambda tracker: tracker.acknowledger("API"),
        lambda tracker: tracker.open(key=b"x"),
    ],
    ids=["on_error", "via", "key"],
)
def test_misspelt_options_are_refused(service, call):
    with pytest.raises(InvalidRequest):
        call(service.tracker)
