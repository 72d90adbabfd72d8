"""Which queues and batches a fan-out takes, and which it refuses."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from pyspark.sql.types import StructType

from fanin.adapters.memory.world import FixedClock
from fanin.domain.batch import Batch, Kind, Mode, OnDeadline, OpenBatch
from fanin.domain.marks import Failure
from fanin.errors import InvalidRequest, NotConfigured, ServiceUnavailable
from fanin.spark.fanout.failed_rows import EarlierBatch, retrying
from fanin.spark.fanout.opening import check_queue, check_url, first_ordinal, open_batch, request_of
from fanin.spark.fanout.staging import Staging
from tests.unit.spark.conftest import MemoryStack

STAGING = Staging("/staging", "rows-1", StructType(), {0: 3, 2: 4})


def opened(
    stack: MemoryStack,
    asked: OpenBatch,
    staging: Staging,
    tell: Callable[[Batch], object] = lambda _: None,
    *,
    began: Callable[[int], bool] | None = None,
    key: str | None = None,
) -> tuple[Batch, str | None]:
    return open_batch(stack, asked, key or staging.attempt, staging, tell, began=began)


def always(_batch_id: int) -> bool:
    return True


def some_failed(stack: MemoryStack) -> Batch:
    """A batch of ten items of which one has failed, and which was cancelled."""
    ledger = stack.ledger()
    batch_id = ledger.open(OpenBatch()).batch_id
    ledger.mark([Failure(ledger.add(batch_id, 10)[2], "no such customer")]).whole()
    return ledger.cancel(batch_id)


@pytest.mark.parametrize(
    ("request_", "why", "what_to_do"),
    [
        ({"limit": 5}, "cannot have a limit", "send with Tracker.batch"),
        (
            {"mode": Mode.ESTIMATED},
            "cannot have the mode estimated: such a batch has no item ids",
            "Leave mode out",
        ),
        ({"kind": Kind.SCATTER}, "opens a plain batch", "leave kind and size out"),
        ({"size": 7}, "counts its items itself", "leave kind and size out"),
    ],
)
def test_what_a_fan_out_cannot_do_is_refused_with_what_to_do(request_, why, what_to_do):
    with pytest.raises(InvalidRequest, match=why) as refused:
        request_of(request_)
    assert what_to_do in str(refused.value)


def test_every_option_of_the_request_reaches_the_batch(stack):
    # Given a request with all that a fan-out can do
    parent = stack.tracker().open().batch_id
    item = stack.tracker().add(parent, 1)[0]
    deadline = stack.memory.clock.now() + 3_600_000
    asked = {
        "user_key": "mine",
        "deadline": deadline,
        "on_deadline": OnDeadline.COMPLETE,
        "parent_item": item,
    }

    batch, group = opened(
        stack, OpenBatch(**asked, metadata={"a": "b"}, idle_ttl=600, lifetime=7_200), STAGING
    )

    assert {name: getattr(batch, name) for name in asked} == asked
    assert (batch.open_idle_ttl, batch.closed_idle_ttl) == (600, 600)
    assert batch.expires_at * 1000 - batch.created_at >= 7_200_000
    assert batch.metadata == {"a": "b", "staging": "rows-1"}
    # And it has an item for each row that was staged
    assert group is not None
    assert stack.tracker().status(batch.batch_id).batch.items == 7


def test_the_batch_is_told_before_it_has_items(stack):
    told: list[tuple[int, int]] = []

    def tell(batch: Batch) -> None:
        told.append((batch.batch_id, stack.tracker().status(batch.batch_id).batch.items))

    batch, _ = opened(stack, OpenBatch(), STAGING, tell)

    assert told == [(batch.batch_id, 0)]


def test_a_second_driver_gets_the_same_batch_and_the_same_items(stack):
    first, again = (opened(stack, OpenBatch(user_key="mine"), STAGING) for _ in range(2))
    assert (first[0].batch_id, first[1]) == (again[0].batch_id, again[1])
    assert stack.tracker().status(first[0].batch_id).batch.items == 7


def test_without_rows_or_after_the_close_there_is_nothing_to_add(stack):
    empty = Staging("/staging", "rows-2", StructType(), {})
    batch, group = opened(stack, OpenBatch(), empty)
    assert (group, stack.tracker().status(batch.batch_id).batch.items) == (None, 0)

    batch, _ = opened(stack, OpenBatch(), STAGING)
    stack.tracker().close(batch.batch_id)
    assert opened(stack, OpenBatch(), STAGING)[1] is None


def test_the_first_row_is_the_first_item_unless_there_are_none(stack):
    batch, _ = opened(stack, OpenBatch(), STAGING)
    assert first_ordinal(stack, batch, STAGING) == 0

    empty = stack.ledger().cancel(stack.ledger().open(OpenBatch()).batch_id)
    with pytest.raises(InvalidRequest, match="ended before its rows became items"):
        first_ordinal(stack, empty, STAGING)


def test_rows_that_are_taken_become_items_even_if_their_batch_was_ended_before(stack):
    # Given batches that somebody ended, one after the other, before a driver came to add the rows
    asked = retrying(OpenBatch(), EarlierBatch.of(some_failed(stack)))
    empty = Staging("/staging", "rows-1", StructType(), {})
    ended_before = set()
    for _time in range(6):
        taken_away, _ = opened(stack, asked, empty, began=always)
        stack.ledger().cancel(taken_away.batch_id)
        ended_before.add(taken_away.batch_id)
    assert len(ended_before) == 6
    # When the driver comes, and another one after it, then the rows are items of another batch
    one, two = (opened(stack, asked, STAGING, began=always) for _ in range(2))
    assert one[0].batch_id == two[0].batch_id
    assert one[0].batch_id not in ended_before
    assert one[1] == two[1] is not None
    # When that one is ended with its items, then it keeps them
    stack.ledger().cancel(one[0].batch_id)
    assert opened(stack, asked, STAGING, began=always)[0].batch_id == one[0].batch_id
    # But if nothing was sent of it, then the rows are items of another batch
    sent = lambda batch_id: batch_id != one[0].batch_id  # noqa: E731
    another = opened(stack, asked, STAGING, began=sent)
    assert another[0].batch_id not in {one[0].batch_id, *ended_before}
    assert another[1] is not None


def test_rows_whose_deadline_is_over_go_out_under_another_key(stack):
    # Given rows of a redrive, of which none was sent until the deadline
    first, clock = some_failed(stack), stack.memory.clock
    assert isinstance(clock, FixedClock)
    asked = retrying(OpenBatch(deadline=clock.now() + 60_000), EarlierBatch.of(first))
    batch, _ = opened(stack, asked, STAGING, began=always)
    clock.advance(61_000)
    stack.ledger().cancel(batch.batch_id)
    # Then another batch needs another deadline; and with one it needs another key
    none = lambda _batch_id: False  # noqa: E731
    with pytest.raises(InvalidRequest, match="the deadline must lie in the future"):
        opened(stack, asked, STAGING, began=none)
    later = replace(asked, deadline=clock.now() + 60_000)
    assert opened(stack, later, STAGING, began=none, key="later")[1] is not None


URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/work"


class Sqs:
    """A client for which ``GetQueueAttributes`` fails with a code, or not."""

    def __init__(self, code: str = "", status: int = 400, message: str = "as SQS says it") -> None:
        self._code, self._status, self._message, self.asked = code, status, message, list[str]()

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:  # noqa: N803
        self.asked.append(QueueUrl)
        if self._code:
            told = {
                "Error": {"Code": self._code, "Message": self._message},
                "ResponseMetadata": {"HTTPStatusCode": self._status},
            }
            raise ClientError(told, "GetQueueAttributes")
        return {"Attributes": dict.fromkeys(AttributeNames, "")}


@pytest.mark.parametrize("url", [URL, "http://127.0.0.1:4566/000000000000/work.fifo"])
def test_a_url_is_taken(url):
    assert check_url(url) == url


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "'' is not the URL of a queue, which looks like"),
        ("work", "'work' is not the URL of a queue, which looks like https://"),
        ("arn:aws:sqs:eu-west-1:123456789012:work", "is not the URL of a queue"),
        ("https:///work", "is not the URL of a queue"),
        ("https://[", "is not the URL of a queue"),
    ],
)
def test_what_is_not_a_url_is_refused(text, why):
    with pytest.raises(InvalidRequest, match=why):
        check_url(text)


@pytest.mark.parametrize(
    ("code", "message", "seen"),
    [
        ("", "", True),
        ("AccessDenied", "no", False),
        ("QueueDoesNotExist", "The specified queue does not exist or you do not have access to it.", False),
    ],
)
def test_a_queue_that_is_there_or_may_not_be_looked_at_is_taken(capsys, code, message, seen):
    sqs = Sqs(code, message=message)
    check_queue(sqs, URL)
    assert sqs.asked == [URL]
    assert ("this job may not look at" in capsys.readouterr().err) is not seen


@pytest.mark.parametrize("code", ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"])
def test_a_queue_that_is_not_there_is_refused(code):
    with pytest.raises(NotConfigured, match=r"check the URL and.* has staged and sent nothing$") as told:
        check_queue(Sqs(code), URL)
    assert URL in str(told.value)


def test_that_sqs_does_not_answer_is_told():
    with pytest.raises(ServiceUnavailable):
        check_queue(Sqs("InternalError", 500), URL)
