"""What a task of the fan-out does, without Spark around it."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from fanin.domain import ids
from fanin.domain.diagnosis import SentItems
from fanin.domain.ids import ItemKey, payload_digest
from fanin.domain.marks import Failure
from fanin.spark.fanout.sending import NOTES, SendTarget, send_pages, sent_before


def page(first: int, size: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"ordinal": range(first, first + size), "body": [f"body {n}" for n in range(first, first + size)]}
    )


GROUP = ids.issue(7, 0, 100_000, bytes(16)).prefix
NOTHING = dict.fromkeys(("ordinal", "reason", "detail"))


class Queue:
    """An SQS client that takes messages, but for bodies that it refuses.

    Attributes:
        taken: how many it took.
        failed, noted: what tasks have failed and noted.
    """

    def __init__(self, refuses: Any = lambda body: False) -> None:
        self._refuses = refuses
        self.taken = 0
        self.failed: list[list[Failure]] = []
        self.noted: list[SentItems] = []

    def target(self, workers: int = 4, **more: Any) -> SendTarget:
        """Where messages go through this client."""
        tracker = SimpleNamespace(
            sqs=self, fail=self.failed.append, note_sent=lambda _batch, sent: self.noted.append(sent)
        )
        service: Any = SimpleNamespace(tracker=lambda: tracker)
        return SendTarget("https://queue", GROUP, service, workers, **more)

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        failed = [
            {"Id": entry["Id"], "Code": "InvalidMessageContents", "SenderFault": True}
            for entry in Entries
            if self._refuses(entry["MessageBody"])
        ]
        self.taken += len(Entries) - len(failed)
        return {"Failed": failed}


def test_a_task_holds_at_most_a_page_however_large_its_partition_is():
    # Given a partition of 10,000 rows in pages of 100
    sqs, behind = Queue(), [0]

    def partition() -> Iterator[pa.RecordBatch]:
        for number in range(100):
            behind.append(number * 100 - sqs.taken)
            yield page(number * 100, 100)

    # When a task sends it
    (told,) = send_pages(partition(), sqs.target())
    # Then it never read a page before all but the requests under way of those before were taken
    assert max(behind) <= 4 * 10
    assert told.to_pylist() == [{**NOTHING, "sent": 10_000, "requests": 1_000, "refused": 0}]


def test_what_the_queue_refuses_fails_its_item_and_is_given_in_bounded_pages():
    # Given a queue that refuses every other message
    sqs = Queue(lambda body: int(body.split()[1]) % 2)
    # When a task sends 5,000
    pages = list(send_pages((page(n * 500, 500) for n in range(10)), sqs.target()))
    # Then the others are sent, and 2,500 items failed, a thousand or so at a time
    rows = [row for one in pages for row in one.to_pylist()]
    refused = {row["ordinal"]: row["detail"] for row in rows if row["ordinal"] is not None}
    assert refused == dict.fromkeys(range(1, 5_000, 2), "InvalidMessageContents")
    assert rows[-1] == {**NOTHING, "sent": 2_500, "requests": 500, "refused": 2_500}
    assert {failure.item for one in sqs.failed for failure in one} == {f"{GROUP}:{n}" for n in refused}
    assert [len(one) for one in sqs.failed] == [1_000, 1_000, 500]
    assert sqs.failed[0][0].reason == "not sent: InvalidMessageContents"


def test_a_task_sends_to_the_queue_of_its_target_and_fails_items_on_its_stack(stack):
    # Given a batch on a stack whose queue refuses a message
    batch = stack.tracker().open().batch_id
    group = stack.tracker().add(batch, 3)
    stack.sqs.refuses.add("body 1")

    told = list(send_pages([page(0, 3)], SendTarget("https://queue", group.prefix, stack)))
    # Then the others are sent under their items, and the item of that one has failed
    assert stack.sqs.sent == {group[0]: "body 0", group[2]: "body 2"}
    (failure,) = stack.tracker().iter_failures(batch)
    assert (failure.item, failure.reason) == (group[1], "not sent: InvalidMessageContents")
    assert [row["ordinal"] for one in told for row in one.to_pylist()] == [1, None]


def test_a_task_counts_its_rows_also_those_that_the_queue_refuses(stack):
    # Given a batch, and a queue that refuses one of its messages
    batch = stack.tracker().open().batch_id
    group = stack.tracker().add(batch, 5)
    stack.sqs.refuses.add("body 1")
    counted: Any = SimpleNamespace(sizes=[])
    counted.add = counted.sizes.append
    # When a task sends it in two pages
    target = SendTarget("https://queue", group.prefix, stack, count=counted)
    list(send_pages([page(0, 3), page(3, 2)], target))
    # Then all of them were counted
    assert sum(counted.sizes) == 5


def test_a_task_notes_what_it_sent_as_it_goes_and_its_successor_leaves_that_out():
    # Given a partition of pages that follow each other, but for one, and a queue that dies in the third
    sqs = Queue(lambda body: 1 / 0 if body == "body 120" else body == "body 7")
    pages = [page(0, 50), page(50, 50), page(100, 50), page(200, 10)]

    # When a task sends it, then its notes grow page by page, without what the queue refused
    with pytest.raises(ZeroDivisionError):
        list(send_pages(pages, sqs.target(1)))
    assert [(one.start, one.stop) for one in sqs.noted] == [(0, 7), (8, 50), (8, 100)]
    # When it is sent again, then what was noted is not sent, and is counted
    sqs = Queue(lambda body: body == "body 7")
    told = send_pages(pages, sqs.target(1, sent=[(0, 7), (8, 100)]))
    *refused, last = [row for one in told for row in one.to_pylist()]
    assert sqs.taken == 60
    assert [row["ordinal"] for row in refused] == [7]
    assert (last["sent"], last["requests"]) == (159, 7)
    assert [(one.start, one.stop) for one in sqs.noted] == [(100, 150), (200, 210)]


def test_a_task_whose_rows_are_scattered_makes_few_notes():
    sqs = Queue()
    list(send_pages((page(2 * n, 1) for n in range(100)), sqs.target()))
    assert len(sqs.noted) == NOTES


def test_a_task_adds_items_by_their_keys_and_its_successor_sends_what_is_left(stack):
    # Given a batch on a stack whose queue refuses a message, in which others have added two keys, one of them
    # with another message, and have done a third
    tracker = stack.tracker()
    batch = tracker.open().batch_id
    tracker.add(batch, keys=[ItemKey("k 3", payload_digest("body 3")), ItemKey("k 150", "another")])
    (done,) = tracker.add(batch, keys=["k 4"])
    tracker.ack(done.item)
    stack.sqs.refuses.add("body 120")
    rows = [page(0, 100), page(100, 100)]
    keys = [pa.array([f"k {n}" for n in one["ordinal"].to_pylist()]) for one in rows]
    keyed = [one.append_column("key", some) for one, some in zip(rows, keys, strict=True)]
    target = SendTarget("https://queue", str(batch), stack)

    def run(target: SendTarget) -> list[dict[str, Any]]:
        return [row for one in send_pages(keyed, target) for row in one.to_pylist()]

    *left, told = run(target)
    # Then each key is one item, and the other rows were sent under them
    assert {(row["ordinal"], row["reason"]) for row in left} == {(120, "unsent"), (150, "conflicting")}
    assert (told["sent"], told["refused"]) == (198, 2)
    assert tracker.status(batch).batch.items == 200
    sent = dict(stack.sqs.sent)
    assert set(sent.values()) == {f"body {n}" for n in range(200) if n not in (4, 120, 150)}
    assert all(tracker.find_key(batch, body.replace("body", "k")).item == item for item, body in sent.items())
    assert tracker.iter_failures(batch).__next__().key == "k 120"
    # When a successor sends them again, then it leaves out what was noted
    stack.sqs.sent.clear()
    before = sent_before(target)
    assert before
    assert not sent_before(replace(target, queue="https://other"))
    *left, told = run(replace(target, sent=before))
    assert not stack.sqs.sent
    assert ([row["ordinal"] for row in left], told["sent"]) == ([150], 199)
