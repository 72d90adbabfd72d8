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

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StringType, StructType

from fanin.client.messages import Message
from fanin.client.producing.sender import Sender
from fanin.client.tracker import Tracker
from fanin.domain import ids
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.diagnosis import SentItems
from fanin.domain.limits import MAX_MARKS
from fanin.domain.marks import Failure, ItemRange
from fanin.domain.tree import runs
from fanin.errors import BatchClosed, InvalidRequest, SendFailed
from fanin.spark.fanout.bodies import BODY
from fanin.spark.fanout.sending import NOTES
from fanin.spark.runtime.service import Service

BLOCK: Final = 10_000
"""Most items that an attempt adds at once."""

_CLAIM: Final = "spark-write"
_NULL: Final = "not sent: the message is null, or is not UTF-8"


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
    A row whose message is null, or is not UTF-8, is an item that has failed.

    Options: ``batch``, the id of an open batch without items, which belongs to this write; ``queue``, a URL;
    ``body``, the column that holds the messages, by default ``body``; ``workers``, requests that each task
    sends at the same time, by default 8.
    """

    service: ClassVar[Service | None] = None

    @classmethod
    def name(cls) -> str:
        return "fanin"

    def writer(self, schema: StructType, overwrite: bool) -> FaninWriter:
        """See ``DataSource.writer``.

        Raises:
            InvalidRequest: an option or a column is missing, or the batch cannot be written to.
            Unreachable: no network leads from here to SQS or DynamoDB.
        """
        if overwrite:
            raise InvalidRequest("messages that were sent cannot be replaced; write with mode append")
        queue, column = self._option("queue"), self.options.get("body", BODY)
        if column not in schema.names or not isinstance(schema[column].dataType, StringType):
            raise InvalidRequest(
                f"there is no text column {column!r} to send; name one with the option body, or make one"
                " with fanin.spark.with_body"
            )
        batch_id = ids.parse_batch_id(self._option("batch"))
        service = self.service or Service.from_env()
        service.require("dynamodb", "sqs")
        check_batch(service.ledger().status(batch_id).batch)
        return FaninWriter(
            service, batch_id, queue, column, int(self.options.get("workers", "8")), uuid.uuid4().hex
        )

    def _option(self, name: str) -> str:
        value = self.options.get(name)
        if not value:
            raise InvalidRequest(f"the option {name} is missing")
        return str(value)


@dataclass
class SentBlocks(WriterCommitMessage):
    """What an attempt has sent.

    Attributes:
        blocks: first ordinal and size of the blocks that it added.
        nulls: ranges of ordinals whose rows have no message, or one that is not text.
    """

    blocks: list[tuple[int, int]]
    nulls: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class FaninWriter(DataSourceArrowWriter):
    """One write.

    Attributes:
        service: the stack.
        batch_id: the batch.
        queue: URL.
        body: the column to send.
        workers: requests that each task sends at the same time.
        name: of this write; another write that takes the same batch has another.
    """

    service: Service
    batch_id: int
    queue: str
    body: str
    workers: int
    name: str

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SentBlocks:
        """Add and send the rows of one attempt of a task; it holds one block, and one is under way.

        Raises:
            InvalidRequest: another write has taken the batch.
            SendFailed: the queue refuses a message for good.
            BatchClosed: the batch has ended, or another attempt of this task was taken.
        """
        self._claim()
        sent = SentBlocks([])
        sender = Sender(
            self.service.tracker().sqs,
            self.queue,
            group_id=str(self.batch_id),
            workers=self.workers,
            strict=True,
        )
        for _, refused in sender.send(self._blocks(iterator, sent)):
            if refused:
                item, why = next(iter(refused.items()))
                raise SendFailed(f"{self.queue} refuses the message of item {item}: {why}", items=refused)
        for start, stop in joined(sent.blocks)[:NOTES]:
            self.service.tracker().note_sent(self.batch_id, SentItems(self.queue, start, stop))
        return sent

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Close the batch, fail the items of null rows, and mark done those of attempts that do not count.

        Raises:
            BatchClosed: somebody ended the batch while it was written to.
        """
        salt = self._claim().salt
        tracker = self.service.tracker()
        batch = tracker.close(self.batch_id)
        if batch.state.terminal and batch.state is not State.COMPLETE:
            raise BatchClosed(f"batch {self.batch_id} was {batch.state} while it was written to")
        counting = [message for message in messages if isinstance(message, SentBlocks)]
        self._fail_nulls(tracker, [span for message in counting for span in message.nulls], salt)
        ours = [block for message in counting for block in message.blocks]
        # Items of a batch with totals are marked one by one, and a call marks only so many.
        most = MAX_MARKS if batch.totals else ids.MAX_COUNT
        others = [
            ItemRange(ids.issue(self.batch_id, first, size, salt).prefix)
            for first, size in gaps(ours, batch.items, most=most)
        ]
        tracker.ack(others)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Cancel the batch, unless it belongs to another write."""
        self._claim()
        self.service.tracker().cancel(self.batch_id)

    def _blocks(
        self, pages: Iterable[pa.RecordBatch], sent: SentBlocks
    ) -> Iterator[Iterable[tuple[str, Message]]]:
        ledger = self.service.ledger()
        for page in pages:
            column = page.column(page.schema.get_field_index(self.body))
            for start in range(0, len(column), BLOCK):
                texts = texts_of(column.slice(start, BLOCK))
                # No key is needed: if an answer is lost and the addition is repeated, no attempt names the
                # first items, and the commit marks them done like those of an attempt that died.
                group = ledger.add(self.batch_id, len(texts))
                first = ids.parse_prefix(group.prefix).first
                sent.blocks.append((first, group.upto))
                # Other attempts may count in place of this one, so the items of nulls fail in the commit.
                sent.nulls.extend(runs([first + at for at, text in enumerate(texts) if text is None]))
                yield (
                    (item, Message(text)) for item, text in zip(group, texts, strict=True) if text is not None
                )

    def _fail_nulls(self, tracker: Tracker, spans: Iterable[tuple[int, int]], salt: bytes) -> None:
        """Fail the items of rows without a message; to do so again has no effect."""
        for start, stop in spans:
            prefix = ids.issue(self.batch_id, start, stop - start, salt).prefix
            tracker.fail(Failure(f"{prefix}:{at}", _NULL, source=self.queue) for at in range(stop - start))

    def _claim(self) -> Batch:
        """Take the batch for this write, since its commit marks the items of everybody else done."""
        ports = self.service.ledger().ports
        batch = ports.batches.read([self.batch_id])[self.batch_id]
        value: Mapping[str, Any] = {"write": self.name}
        record, _ = ports.records.put(
            str(self.batch_id), _CLAIM, value, expires_at=batch.expires_at, if_version=0
        )
        if record is None or record.value != value:
            raise InvalidRequest(
                f"batch {self.batch_id} belongs to another write; open a batch for each write"
            )
        return batch


def texts_of(column: Any) -> list[str | None]:
    """The values of a column of text; None also for one whose bytes are not UTF-8, which Spark passes on."""
    found: list[str | None] = []
    for raw in column.cast(pa.large_binary()).to_pylist():
        try:
            found.append(None if raw is None else raw.decode())
        except UnicodeDecodeError:
            found.append(None)
    return found


def joined(blocks: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Blocks, each a first ordinal and a size, as ascending ranges; neighbours become one."""
    found: list[tuple[int, int]] = []
    for first, size in sorted(blocks):
        if found and found[-1][1] == first:
            found[-1] = found[-1][0], first + size
        else:
            found.append((first, first + size))
    return found


def gaps(
    blocks: Iterable[tuple[int, int]], items: int, *, most: int = ids.MAX_COUNT
) -> Iterator[tuple[int, int]]:
    """The items of a batch that are in none of some blocks.

    Args:
        blocks: first ordinal and size of each; they do not overlap.
        items: of the batch.
        most: items of a gap; a larger one is divided.

    Yields:
        First ordinal and size of each gap.
    """
    at = 0
    for first, size in [*sorted(blocks), (items, 0)]:
        for start in range(at, first, most):
            yield start, min(first - start, most)
        at = first + size


def check_batch(batch: Batch) -> None:
    """Refuse a batch that a write cannot fill.

    Raises:
        InvalidRequest: it is not open and empty, it is estimated, or it has a limit. Says what to do.
    """
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
