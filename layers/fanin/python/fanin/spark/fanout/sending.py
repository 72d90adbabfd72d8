"""What the tasks of a fan-out do: send messages, and fail the items of messages that the queue refuses."""

from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import DataFrame

from fanin.client.messages import Message
from fanin.client.producing.sender import Sender, SentNotes
from fanin.domain import ids
from fanin.domain.diagnosis import SentItems
from fanin.domain.ids import MAX_KEYS, Block, ItemKey, KeyedItem, payload_digest
from fanin.domain.limits import MAX_FAILED_MESSAGES, chunks
from fanin.domain.marks import MAX_HEAVY, Failure
from fanin.domain.tree import runs
from fanin.spark.fanout.bodies import BODY, KEY
from fanin.spark.fanout.staging import ORDINAL
from fanin.spark.runtime.arrow import ArrowBatches, ddl, page
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.service import PATIENCE, PATIENT, Service

_RESULT: Final = pa.schema(
    [
        *((ORDINAL, pa.int64()), ("reason", pa.string()), ("detail", pa.string())),
        *((name, pa.int64()) for name in ("sent", "requests", "refused")),
    ]
)
RESULT: Final = ddl(_RESULT)
"""What sending gives: a row for each message that was not sent, with its ordinal and why; and a row for each
task, with the messages that it sent, the requests that they took, and the messages that were not sent."""
_CONFLICTING: Final = "its key was added to the batch with another message, which stays"

NOTES: Final = 64
"""Notes of what a task has sent, at most: one for each run of ordinals, which is a file of the staging."""
MOST_NOTES: Final = 10_000
"""Notes that a run reads to leave out what was sent before: of a quarter of a billion rows, or more."""


@dataclass(frozen=True)
class SendTarget:
    """Where messages go, and as which items.

    Attributes:
        queue: URL.
        group: ``<batch id>:<group id>``; a row's item id is this and the row's ordinal. Of rows that have
            keys it is the batch id, and tasks add their items.
        service: the stack, where refused messages fail their items.
        workers: requests that each task sends at the same time.
        fair: name the batch as the group of messages on a standard queue, too.
        count: gets the number of rows of a task when it ends.
        sent: runs of rows, or of items that have keys, that an earlier run has sent, from one ordinal to
            another, in order. They count as sent, and are not sent again.
    """

    queue: str
    group: str
    service: Service
    workers: int = 8
    fair: bool = False
    count: Accumulator[int] | None = None
    sent: Sequence[tuple[int, int]] = ()

    @property
    def keyed(self) -> bool:
        return ":" not in self.group

    @property
    def block(self) -> Block:
        """The batch, and the ordinals that may be those of its rows."""
        return Block(int(self.group), 0, ids.MAX_ITEMS, 0) if self.keyed else ids.parse_prefix(self.group)

    def sender(self) -> Sender:
        """A sender as patient as a task, which Spark retries: only what can never be sent is refused."""
        return Sender(
            self.service.tracker().sqs,
            self.queue,
            group_id=str(self.block.batch_id),
            fair=self.fair,
            workers=self.workers,
            backoff=PATIENT,
            keep=True,
            strict=True,
        )

    def add_keys(self, keys: Sequence[ItemKey]) -> Sequence[KeyedItem]:
        """Add items by their keys, or find them, and wait for other tasks that do."""
        ledger, batch_id = self.service.ledger(), self.block.batch_id
        return PATIENT.patiently(lambda: ledger.add_keys(batch_id, keys), PATIENCE).items


def send(numbered: DataFrame, target: SendTarget) -> DataFrame:
    """Send numbered messages, one for each item, as often as the result is evaluated: rows of ``RESULT``."""
    names = [ORDINAL, BODY, *([KEY] if target.keyed else [])]
    return numbered.select(*names).mapInArrow(lambda pages: send_pages(pages, target), RESULT)


def sent_before(target: SendTarget) -> list[tuple[int, int]]:
    """Runs of rows whose messages the queue has, by the notes of all runs so far; see ``SendTarget.sent``."""
    block, parts = target.block, target.service.ledger().ports.parts
    rows = parts.sent(block.batch_id, upto=block.stop, limit=MOST_NOTES)[0]
    spans = [(row.start - block.first, row.stop - block.first) for row in rows if row.queue == target.queue]
    return sorted(span for span in spans if span[0] >= 0)


def send_pages(pages: Iterable[ArrowBatches], target: SendTarget) -> Iterator[ArrowBatches]:
    """Send the pages of one task. It holds one page, the requests under way and some refusals at most.

    Items that were sent are noted when all of a page were; a note grows from page to page. Whoever goes on
    after a task that died leaves them out. Messages that the queue refused are kept with the failures.
    """
    tracker, sender = target.service.tracker(), target.sender()
    outgoing = (_Keyed if target.keyed else _Outgoing)(target)
    requests = size = unsent = 0
    refused: dict[int, Failure] = {}

    def left_out(least: int) -> Iterator[ArrowBatches]:
        """Tell of rows that were not sent, once there are so many, or their messages are large."""
        nonlocal refused, size, unsent
        if len(refused) >= least or size >= MAX_FAILED_MESSAGES:
            tracker.fail(list(refused.values()))
            why = {row: failure.reason.removeprefix("not sent: ") for row, failure in refused.items()}
            yield _not_sent(Reason.UNSENT, why)
            unsent, refused, size = unsent + len(why), {}, 0
        if len(outgoing.conflicting) >= least:
            yield _not_sent(Reason.CONFLICTING, dict.fromkeys(outgoing.conflicting, _CONFLICTING))
            unsent, outgoing.conflicting = unsent + len(outgoing.conflicting), []

    for taken, failed in sender.send(map(outgoing.entries, pages)):
        rows = outgoing.answered(taken, failed)
        requests += 1
        for item, why in failed.items():
            kept = sender.take_refused(item)
            refused[rows[item]] = Failure(item, f"not sent: {why}", kept, source=target.queue)
            size += len(kept.body) if kept else 0
        yield from left_out(MAX_HEAVY)
    yield from left_out(1)
    if target.count is not None:
        target.count.add(outgoing.sent + unsent)
    yield page(_RESULT, [(None, None, None, outgoing.sent, requests, unsent)])


def _not_sent(reason: Reason, details: Mapping[int, str]) -> ArrowBatches:
    return page(_RESULT, [(row, reason.value, why, None, None, None) for row, why in details.items()])


class _Outgoing:
    """The messages of a task, page by page, and the notes of those that were sent.

    Attributes:
        sent: messages that were, those of an earlier run among them.
        conflicting: ordinals of rows whose items have another message, that are still to be told.
    """

    def __init__(self, target: SendTarget) -> None:
        self.sent = 0
        self.conflicting: list[int] = []
        self._target = target
        self._first = target.block.first
        self._notes = SentNotes(target.block.batch_id, target.queue, self._note_some)
        self._starts: set[int] = set()
        self._refused: set[str] = set()

    def entries(self, given: ArrowBatches) -> Iterator[tuple[str, Message]]:
        """The messages of a page that were not sent before, by ordinal."""
        rows = dict(zip(given.column(ORDINAL).to_pylist(), given.column(BODY).to_pylist(), strict=True))
        left = sorted(rows)
        if self._target.sent:
            left = [ordinal for ordinal in left if not self._is_sent(ordinal)]
            self.sent += len(rows) - len(left)
        for start, stop in runs(left):
            self._notes.begin(self._first + start, self._first + stop, stop - start)
        group = self._target.group
        return ((f"{group}:{ordinal}", Message(rows[ordinal])) for ordinal in left)

    def _is_sent(self, ordinal: int) -> bool:
        before = self._target.sent
        at = bisect_right(before, (ordinal, inf)) - 1
        return at >= 0 and ordinal < before[at][1]

    def answered(self, taken: int, refused: Collection[str]) -> dict[str, int]:
        """Count what the queue took of a request, note the pages that are done, and find the refused rows."""
        self.sent += taken
        self._refused.update(refused)
        self._notes.answered(taken + len(refused), self._refused)
        return {item: int(item.rpartition(":")[2]) for item in refused}

    def _note_some(self, batch_id: int, sent: SentItems) -> None:
        self._starts.add(sent.start)
        if len(self._starts) <= NOTES:
            self._target.service.tracker().note_sent(batch_id, sent)


class _Keyed(_Outgoing):
    """The messages of a task whose rows have keys, by which it adds their items first."""

    def __init__(self, target: SendTarget) -> None:
        super().__init__(target)
        self._under_way: deque[tuple[str, int]] = deque()

    def entries(self, given: ArrowBatches) -> Iterator[tuple[str, Message]]:
        rows = list(zip(*(given.column(name).to_pylist() for name in (ORDINAL, BODY, KEY)), strict=True))
        for some in chunks(rows, max_items=MAX_KEYS):
            keys = self._target.add_keys([ItemKey(key, payload_digest(body)) for _, body, key in some])
            wanted: list[tuple[int, str, int, str]] = []
            for one, (row, body, _) in zip(keys, some, strict=True):
                if one.differs:
                    self.conflicting.append(row)
                elif one.send and not self._is_sent(at := ids.parse_item(one.item)[1]):
                    wanted.append((at, one.item, row, body))
                else:
                    self.sent += 1
            wanted.sort()
            for first, stop in runs([at for at, *_ in wanted]):
                self._notes.begin(first, stop, stop - first)
            for _, item, row, body in wanted:
                self._under_way.append((item, row))
                yield item, Message(body)

    def answered(self, taken: int, refused: Collection[str]) -> dict[str, int]:
        super().answered(taken, refused)
        # Requests are answered in the order in which they were made.
        rows = dict(self._under_way.popleft() for _ in range(taken + len(refused)))
        return {item: rows[item] for item in refused}
