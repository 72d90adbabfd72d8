"""What the tasks of a fan-out do: send messages, and fail the items of messages that the queue refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import DataFrame

from fanin.client.messages import Message
from fanin.client.producing.sender import Sender
from fanin.domain import ids
from fanin.domain.diagnosis import SentItems
from fanin.domain.failures import KeptMessage
from fanin.domain.limits import MAX_FAILED_MESSAGES
from fanin.domain.marks import MAX_HEAVY, Failure
from fanin.domain.tree import runs
from fanin.spark.fanout.bodies import BODY
from fanin.spark.fanout.staging import ORDINAL
from fanin.spark.runtime.arrow import ddl
from fanin.spark.runtime.service import Service

_RESULT: Final = pa.schema(
    [(ORDINAL, pa.int64()), ("detail", pa.string()), ("sent", pa.int64()), ("requests", pa.int64())]
)
RESULT: Final = ddl(_RESULT)
"""What sending gives: a row for each message that the queue refused, with its ordinal and the reason; and a
row for each task, with the messages that it sent and the requests that they took."""

NOTES: Final = 16
"""Notes of what a task has sent, at most: one for each run of ordinals, and nearly all tasks have one."""

Send = Callable[[Iterable[Iterable[tuple[str, Message]]]], Iterator[tuple[int, dict[str, str]]]]
"""``Sender.send``."""


@dataclass(frozen=True)
class Target:
    """Where messages go, and as which items.

    Attributes:
        queue: URL.
        group: ``<batch id>:<group id>``; a row's item id is this and the row's ordinal.
        service: the stack, where refused messages fail their items.
        workers: requests that each task sends at the same time.
        count: gets the number of rows of a task when it ends.
    """

    queue: str
    group: str
    service: Service
    workers: int = 8
    count: Accumulator[int] | None = None


def send(numbered: DataFrame, target: Target) -> DataFrame:
    """Send messages, one for each item. Whenever the result is evaluated, they are sent.

    Args:
        numbered: ``ordinal`` and ``body``.
        target: where they go.

    Returns:
        Rows of ``RESULT``.
    """
    return numbered.select(ORDINAL, BODY).mapInArrow(send_task(target), RESULT)


def send_task(target: Target) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function of a task that sends.

    Returns:
        A function that takes ``ordinal`` and ``body``, and gives rows of ``RESULT``.
    """

    def run(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tracker = target.service.tracker()
        sender = Sender(
            tracker.sqs,
            target.queue,
            group_id=target.group.partition(":")[0],
            workers=target.workers,
            keep=True,
            strict=True,  # Spark retries the task, and people the job; only what can never be sent has failed
        )
        block = ids.parse_prefix(target.group)

        def note(start: int, stop: int) -> None:
            sent = SentItems(target.queue, block.first + start, block.first + stop)
            tracker.note_sent(block.batch_id, sent)

        yield from send_pages(
            pages if target.count is None else _counted(pages, target.count),
            target.group,
            sender.send,
            tracker.fail,
            note=note,
            message=sender.take_refused,
            queue=target.queue,
        )

    return run


def _counted(pages: Iterable[pa.RecordBatch], count: Accumulator[int]) -> Iterator[pa.RecordBatch]:
    """The pages; Spark tells the driver of their rows when the task ends."""
    for page in pages:
        yield page
        count.add(page.num_rows)


def send_pages(
    pages: Iterable[pa.RecordBatch],
    group: str,
    send: Send,
    fail: Callable[[list[Failure]], object],
    *,
    note: Callable[[int, int], object] = lambda _start, _stop: None,
    message: Callable[[str], KeptMessage | None] = lambda _: None,
    queue: str = "",
) -> Iterator[pa.RecordBatch]:
    """Send the pages of one task. It holds one page, the requests under way and some refusals at most.

    Args:
        pages: ``ordinal`` and ``body``.
        group: of the items.
        send: as ``Sender.send``.
        fail: records failures.
        message: gives the message of an item that the queue refused, to be kept.
        queue: its URL.
        note: notes that the items from one index of the group to another were sent, once all were.

    Yields:
        Pages of ``RESULT``.
    """
    sent = requests = 0
    refused: dict[str, Failure] = {}
    size = 0
    spans: list[tuple[int, int]] = []
    for taken, failed in send(_entries(page, group, spans) for page in pages):
        sent, requests = sent + taken, requests + 1
        for item, why in failed.items():
            kept = message(item)
            refused[item] = Failure(item, f"not sent: {why}", kept, source=queue)
            size += len(kept.body) if kept else 0
        if len(refused) >= MAX_HEAVY or size >= MAX_FAILED_MESSAGES:
            yield _fail(refused, fail)
            refused, size = {}, 0
    if refused:
        yield _fail(refused, fail)
    for start, stop in spans[:NOTES]:
        note(start, stop)
    yield _result([{"sent": sent, "requests": requests}])


def _entries(page: pa.RecordBatch, group: str, spans: list[tuple[int, int]]) -> Iterator[tuple[str, Message]]:
    """The messages of a page; ``spans`` gets the runs of their ordinals, joined to those of the last page."""
    ordinals, texts = page.column(ORDINAL).to_pylist(), page.column(BODY).to_pylist()
    for start, stop in runs(sorted(ordinals)):
        if spans and spans[-1][1] == start:
            spans[-1] = spans[-1][0], stop
        elif len(spans) < NOTES:
            spans.append((start, stop))
    return ((f"{group}:{ordinal}", Message(text)) for ordinal, text in zip(ordinals, texts, strict=True))


def _fail(refused: Mapping[str, Failure], fail: Callable[[list[Failure]], object]) -> pa.RecordBatch:
    fail(list(refused.values()))
    return _result(
        [
            {ORDINAL: int(item.rpartition(":")[2]), "detail": failure.reason.removeprefix("not sent: ")}
            for item, failure in refused.items()
        ]
    )


def _result(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=_RESULT)
