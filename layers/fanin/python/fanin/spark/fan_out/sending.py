"""What the tasks of a fan-out do: send messages, and fail the items of messages that the queue refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from fanin.client.messages import Message
from fanin.client.producing.sender import Sender
from fanin.domain.acks import Failure
from fanin.domain.limits import MAX_FAILURES
from fanin.spark.fan_out.bodies import BODY
from fanin.spark.fan_out.staging import ORDINAL
from fanin.spark.runtime.service import Service

RESULT: Final = (
    StructType().add(ORDINAL, "long").add("detail", "string").add("sent", "long").add("requests", "long")
)
"""What sending gives: a row for each message that the queue refused, with its ordinal and the reason; and a
row for each task, with the messages that it sent and the requests that they took."""

_RESULT_ARROW: Final = pa.schema(
    [(ORDINAL, pa.int64()), ("detail", pa.string()), ("sent", pa.int64()), ("requests", pa.int64())]
)

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
    """

    queue: str
    group: str
    service: Service
    workers: int = 8


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
            strict=True,  # Spark retries the task, and people the job; only what can never be sent has failed
        )
        yield from send_pages(pages, target.group, sender.send, tracker.fail)

    return run


def send_pages(
    pages: Iterable[pa.RecordBatch],
    group: str,
    send: Send,
    fail: Callable[[list[Failure]], object],
) -> Iterator[pa.RecordBatch]:
    """Send the pages of one task. It holds one page, the requests under way and some refusals at most.

    Args:
        pages: ``ordinal`` and ``body``.
        group: of the items.
        send: as ``Sender.send``.
        fail: records failures.

    Yields:
        Pages of ``RESULT``.
    """
    sent = requests = 0
    refused: dict[str, str] = {}
    for taken, failed in send(_entries(page, group) for page in pages):
        sent, requests = sent + taken, requests + 1
        refused |= failed
        if len(refused) >= MAX_FAILURES:
            yield _fail(refused, fail)
            refused = {}
    if refused:
        yield _fail(refused, fail)
    yield _result([{"sent": sent, "requests": requests}])


def _entries(page: pa.RecordBatch, group: str) -> Iterator[tuple[str, Message]]:
    ordinals, texts = page.column(ORDINAL).to_pylist(), page.column(BODY).to_pylist()
    return ((f"{group}:{ordinal}", Message(text)) for ordinal, text in zip(ordinals, texts, strict=True))


def _fail(refused: Mapping[str, str], fail: Callable[[list[Failure]], object]) -> pa.RecordBatch:
    fail([Failure(item, f"not sent: {why}") for item, why in refused.items()])
    return _result([{ORDINAL: int(item.rpartition(":")[2]), "detail": why} for item, why in refused.items()])


def _result(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=_RESULT_ARROW)
