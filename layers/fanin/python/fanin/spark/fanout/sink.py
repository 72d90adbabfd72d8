"""``df.write.format("fanin")``: a DataFrame to a queue as one batch. Spark 4.0 or later.

    from fanin.spark import register, with_body

    register(spark)
    frame = with_body(frame)
    frame.write.format("fanin").option("batch", batch_id).option("queue", url).mode("append").save()

The DataFrame need not be deterministic. Every attempt of a task adds items of its own and sends them; at the
end Spark says which attempts count. The commit closes the batch, so that attempts that still run cannot add
to it, and then marks the items of all other attempts done. So the batch completes with the last message of
the attempts that count.
"""

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StringType, StructType

from fanin.client.messages import Message
from fanin.domain import ids
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.diagnosis import SentItems
from fanin.domain.ids import MAX_KEY, MAX_KEYS, ItemKey, payload_digest
from fanin.domain.limits import MAX_MARKS, UNSENDABLE, chunks, shown
from fanin.domain.marks import Failure, ItemRange
from fanin.domain.tree import runs
from fanin.errors import BatchClosed, InvalidRequest, SendFailed
from fanin.spark.fanout.bodies import BODY, MOST_BODY
from fanin.spark.fanout.sending import NOTES, SendTarget
from fanin.spark.runtime.arrow import slices
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.values import whole

BLOCK: Final = 10_000
"""Most items that an attempt adds at once."""

_CLAIM: Final = "spark-write"
_NO_BODY: Final = (
    f"not sent: the message is null, empty, over {MOST_BODY} bytes, not UTF-8, or has a character that no SQS"
    " message may carry"
)
_NO_KEY: Final = f"not sent: the key is null, empty, over {MAX_KEY} bytes, or not UTF-8"


def register(spark: SparkSession, service: Service | None = None) -> None:
    """Make the format ``fanin`` known to a session.

    Args:
        spark: the session.
        service: the stack; by default the one that the environment of this process names.
    """
    # Spark pickles a class that cannot be imported by its name as a whole, and the service with it.
    attributes = {"service": service or Service.from_env()}
    spark.dataSource.register(type("FaninDataSource", (FaninDataSource,), attributes))


class FaninDataSource(DataSource):
    """The format ``fanin``; it can be written, but not read.

    A row is evaluated once by each attempt of its task, and nothing is made of it but that attempt's message.
    A row that has no message, or one that no queue takes, is an item that has failed.

    Options: ``batch``, the id of an open batch without items, which belongs to this write; ``queue``, a URL;
    ``body``, the column that holds the messages, by default ``body``; ``keys``, that of the keys of items, by
    default none; ``fair``, ``true`` to name the batch as the group of messages on a standard queue;
    ``workers``, requests that each task sends at the same time, by default 8.
    """

    service: ClassVar[Service | None] = None

    @classmethod
    def name(cls) -> str:
        return "fanin"

    def writer(self, schema: StructType, overwrite: bool) -> "FaninWriter":
        """See ``DataSource.writer``.

        Raises:
            InvalidRequest: an option or a column is missing or wrong, or the batch cannot be written to.
            Unreachable: no network leads from here to SQS or DynamoDB.
        """
        if overwrite:
            raise InvalidRequest("messages that were sent cannot be replaced; write with mode append")
        queue, column, keys = self._option("queue"), self.options.get("body", BODY), self.options.get("keys")
        for name, do in (
            (column, "to send; name one with the option body, or make one with fanin.spark.with_body"),
            (keys, "of keys; name one with the option keys, and cast keys that are not text"),
        ):
            if name and (name not in schema.names or not isinstance(schema[name].dataType, StringType)):
                raise InvalidRequest(f"there is no text column {name!r} {do}")
        fair = self.options.get("fair", "false").lower()
        if fair not in {"true", "false"}:
            raise InvalidRequest(f"the option fair is true or false, not {fair!r}")
        batch_id = ids.parse_batch_id(self._option("batch"))
        service = self.service or Service.from_env()
        service.require("dynamodb", "sqs")
        check_batch(service.ledger().status(batch_id).batch)
        workers = whole("workers", self.options.get("workers", "8"), 1)
        to = SendTarget(queue, str(batch_id), service, workers, fair == "true")
        return FaninWriter(to, column, uuid.uuid4().hex, keys)

    def _option(self, name: str) -> str:
        value = self.options.get(name)
        if not value:
            raise InvalidRequest(f"the option {name} is missing")
        return str(value)


@dataclass
class SentBlocks(WriterCommitMessage):
    """What an attempt has sent.

    Attributes:
        spans: ordinals of the items that it added, and of those that have keys, that others have added.
        failed: those whose rows have no message, or no key, and why.
    """

    spans: list[tuple[int, int]]
    failed: list[tuple[int, int, str]] = field(default_factory=list)

    def without_body(self, ordinals: Iterable[int]) -> None:
        self.failed.extend((*span, _NO_BODY) for span in runs(sorted(ordinals)))


@dataclass(frozen=True)
class FaninWriter(DataSourceArrowWriter):
    """One write, with the options of its ``FaninDataSource``.

    Attributes:
        name: of this write; another write that takes the same batch has another.
    """

    to: SendTarget
    body: str
    name: str
    keys: str | None = None

    @property
    def batch_id(self) -> int:
        return self.to.block.batch_id

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SentBlocks:
        """Add and send the rows of one attempt of a task; it holds one block, and one is under way."""
        self._claim()
        sent = SentBlocks([])
        blocks = self._blocks if self.keys is None else self._keyed_blocks
        for _, refused in self.to.sender().send(blocks(iterator, sent)):
            if refused:
                item, why = next(iter(refused.items()))
                raise SendFailed(f"{self.to.queue} refuses the message of item {item}: {why}", items=refused)
        for start, stop in joined(sent.spans)[:NOTES]:
            self.to.service.tracker().note_sent(self.batch_id, SentItems(self.to.queue, start, stop))
        return sent

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Close the batch, fail the items of bad rows, and mark done those of attempts that do not count."""
        salt = self._claim().salt
        tracker = self.to.service.tracker()
        batch = tracker.close(self.batch_id)
        if batch.state.terminal and batch.state is not State.COMPLETE:
            raise BatchClosed(f"batch {self.batch_id} was {batch.state} while it was written to")
        counting = [message for message in messages if isinstance(message, SentBlocks)]
        # To fail an item again has no effect.
        for start, stop, why in (span for message in counting for span in message.failed):
            prefix = self._prefix(start, stop, salt)
            tracker.fail(Failure(f"{prefix}:{at}", why, source=self.to.queue) for at in range(stop - start))
        ours = [span for message in counting for span in message.spans]
        # Items of a batch with totals are marked one by one, and a call marks only so many.
        most = MAX_MARKS if batch.totals else ids.MAX_COUNT
        others = gaps(ours, batch.items, most=most)
        tracker.ack([ItemRange(self._prefix(start, stop, salt)) for start, stop in others])

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Cancel the batch, unless it belongs to another write."""
        self._claim()
        self.to.service.tracker().cancel(self.batch_id)

    def _blocks(
        self, pages: Iterable[pa.RecordBatch], sent: SentBlocks
    ) -> Iterator[Iterable[tuple[str, Message]]]:
        for page in slices(pages, BLOCK):
            texts = _bodies_of(page.column(self.body))
            items = self._added(len(texts), sent)
            # Other attempts may count in place of this one: items without a message fail in the commit.
            first = sent.spans[-1][0]
            sent.without_body(first + at for at, text in enumerate(texts) if text is None)
            rows = zip(items, texts, strict=True)
            yield ((item, Message(text)) for item, text in rows if text is not None)

    def _keyed_blocks(
        self, pages: Iterable[pa.RecordBatch], sent: SentBlocks
    ) -> Iterator[Iterable[tuple[str, Message]]]:
        for page in pages:
            bodies, keys = _bodies_of(page.column(self.body)), _texts_of(page.column(self.keys))
            rows = zip(keys, bodies, strict=True)
            good = [(key, body) for key, body in rows if key and len(key.encode()) <= MAX_KEY]
            if bad := len(keys) - len(good):
                self._added(bad, sent)
                sent.failed.append((*sent.spans[-1], _NO_KEY))
            for some in chunks(good, max_items=MAX_KEYS):
                yield self._keyed(some, sent)

    def _keyed(self, rows: Sequence[tuple[str, str | None]], sent: SentBlocks) -> list[tuple[str, Message]]:
        """Add the keys of rows, and give the messages that are to be sent."""
        items = self.to.add_keys([ItemKey(key, payload_digest(body or "")) for key, body in rows])
        if other := next((one for one in items if one.differs), None):
            raise InvalidRequest(
                f"the key {shown(other.key)} has two messages in batch {self.batch_id}, and one key is one"
                " item: leave out all rows of a key but one; and if rows are others each time that they are"
                " evaluated, send them with fan_out, which evaluates them once"
            )
        ordinals = [ids.parse_item(one.item)[1] for one in items]
        sent.spans.extend(runs(sorted(set(ordinals))))
        sent.without_body({at for at, (_, body) in zip(ordinals, rows, strict=True) if body is None})
        return [
            (one.item, Message(body))
            for one, (_, body) in zip(items, rows, strict=True)
            if body is not None and one.send
        ]

    def _added(self, count: int, sent: SentBlocks) -> list[str]:
        """Add items without keys.

        If an answer is lost and the addition is repeated, no attempt names the first items, and the commit
        marks them done like those of an attempt that died.
        """
        group = self.to.service.ledger().add(self.batch_id, count)
        block = ids.parse_prefix(group.prefix)
        sent.spans.append((block.first, block.stop))
        return list(group)

    def _prefix(self, start: int, stop: int, salt: bytes) -> str:
        return ids.issue(self.batch_id, start, stop - start, salt).prefix

    def _claim(self) -> Batch:
        """Take the batch for this write, since its commit marks the items of everybody else done."""
        ports, key = self.to.service.ledger().ports, str(self.batch_id)
        batch = ports.batches.read([self.batch_id])[self.batch_id]
        value: Mapping[str, Any] = {"write": self.name}
        record, _ = ports.records.put(key, _CLAIM, value, expires_at=batch.expires_at, if_version=0)
        if record is None or record.value != value:
            raise InvalidRequest(
                f"batch {self.batch_id} belongs to another write; open a batch for each write"
            )
        return batch


def _texts_of(column: Any) -> list[str | None]:
    """The values of a column of text; None also for one whose bytes are not UTF-8, which Spark passes on."""
    found: list[str | None] = []
    for raw in column.cast(pa.large_binary()).to_pylist():
        try:
            found.append(None if raw is None else raw.decode())
        except UnicodeDecodeError:
            found.append(None)
    return found


def _bodies_of(column: Any) -> list[str | None]:
    """The messages of a column; None for what no queue takes."""
    return [
        text if text and len(text.encode()) <= MOST_BODY and not re.search(UNSENDABLE, text) else None
        for text in _texts_of(column)
    ]


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of ordinals, ascending; those without a gap become one."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if found and found[-1][1] >= start:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found


def gaps(
    spans: Iterable[tuple[int, int]], items: int, *, most: int = ids.MAX_COUNT
) -> Iterator[tuple[int, int]]:
    """The items of a batch that are in none of some spans, as spans of at most so many."""
    at = 0
    for start, stop in [*joined(spans), (items, items)]:
        yield from ((first, min(first + most, start)) for first in range(at, start, most))
        at = stop


def check_batch(batch: Batch) -> None:
    """Refuse a batch that a write cannot fill: not open and empty, estimated, or with a limit."""
    found = None
    if batch.state is not State.OPEN or batch.items:
        found = f"is {batch.state.value} with {batch.items} items"
    elif batch.mode is not Mode.EXACT:
        found = "is estimated, so its items have no ids"
    elif batch.limit is not None:
        found = "has a limit, and tasks of Spark do not wait for consumers"
    if found:
        raise InvalidRequest(
            f"batch {batch.batch_id} {found}; open one for each write, exact and without a limit"
        )
