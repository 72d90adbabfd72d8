"""Sending messages to a queue: ten in a request, several requests at a time, repeating only what failed."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from botocore.exceptions import ClientError

from fanin.adapters.aws import blames_content, error_code
from fanin.adapters.backoff import Backoff
from fanin.client.messages import Attribute, Message, attribute_value, size_in_utf8
from fanin.client.sqs import REQUEST_BYTES, SQSClient, queue_errors, refusal_text
from fanin.domain import ids, limits
from fanin.domain.diagnosis import SentItems
from fanin.domain.directory import is_fifo
from fanin.domain.failures import KeptMessage
from fanin.domain.limits import chunks
from fanin.domain.tree import runs
from fanin.entry.kept_messages import kept_message
from fanin.errors import RequestTooLarge, ServiceUnavailable, Throttled
from fanin.names import ADDRESSING, ITEM_ATTRIBUTE

SEND_WAITS: Final = Backoff(tries=6, base=0.1, cap=20.0)
"""Attempts of a sender and its waits in between, by default: up to three seconds before it gives up."""


class SendEntry(NamedTuple):
    """One message, ready for SendMessageBatch.

    Attributes:
        item: its item id.
        size: bytes as SQS counts them: the body, and names, types and values of the attributes.
        fields: the fields of the request's entry, without Id.
    """

    item: str
    size: int
    fields: Mapping[str, Any]


@dataclass(eq=False)
class Sender:
    """Sends messages to one queue, each with its item id as a message attribute.

    Attributes:
        sqs: client.
        queue_url: the queue. Requests to a FIFO queue are sent one after the other, which keeps the order;
            only an entry that SQS fails at first and accepts later comes after its neighbours.
        group_id: message group on a FIFO queue for messages that name none.
        fair: name the group on a standard queue, too, which then serves all groups alike (fair queues).
        attributes: message attributes of every message; a message's own take precedence.
        workers: how many requests are sent at a time.
        request_bytes: most bytes of a request.
        backoff: how often a request or an entry is sent, and the waits in between; botocore's own retries
            come on top.
        strict: raise Throttled if entries fail in all attempts without being to blame, for callers that can
            repeat all of their work; by default such entries are reported like those that are to blame.
        keep: hold messages that the queue refused until ``take_refused`` hands them over.
        refused: item id → why the queue did not accept its message, of all requests so far; those of requests
            that ``send`` has not told of yet are among them.

    Raises:
        InvalidRequest: an argument is not what it should be.
    """

    sqs: SQSClient
    queue_url: str
    _: KW_ONLY
    group_id: str
    fair: bool = False
    attributes: Mapping[str, Attribute] | None = None
    workers: int = 8
    request_bytes: int = REQUEST_BYTES
    backoff: Backoff = SEND_WAITS
    strict: bool = False
    keep: bool = False
    refused: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        limits.text("queue_url", self.queue_url, limits.MAX_CHANNEL, least=1)
        limits.whole("workers", self.workers, 1, 1_000)
        limits.whole("request_bytes", self.request_bytes, 1, limits.MAX_SQS_BYTES)
        self._fifo = is_fifo(self.queue_url)
        self._workers = 1 if self._fifo else self.workers
        self._attributes, self._attribute_bytes = _with_item(self.attributes or {})
        self._kept: dict[str, KeptMessage] = {}

    def send(self, blocks: Iterable[Iterable[tuple[str, Message]]]) -> Iterator[tuple[int, dict[str, str]]]:
        """Send messages, reading the stream only as fast as they are sent.

        A request never spans two blocks. So while the next block is held up, for example because the batch is
        full, all messages of the blocks before it are sent.

        Args:
            blocks: each an iterable of item ids with their messages.

        Yields:
            For each request: how many messages the queue accepted; and of each other item the reason, by id.

        Raises:
            RequestTooLarge: a message is larger than a request may be.
            AccessDenied, NotConfigured, ServiceUnavailable: the queue cannot be reached.
            Throttled: the sender is strict, and entries failed in all attempts.
        """
        requests = (request for block in blocks for request in self._requests(block))
        with ThreadPoolExecutor(self._workers, thread_name_prefix="fanin-send") as pool:
            running: deque[Future[tuple[int, dict[str, str]]]] = deque()
            for request in requests:
                running.append(pool.submit(self._request, request))
                if len(running) > self._workers:  # one more than can run, so that no worker waits
                    yield running.popleft().result()
            yield from (future.result() for future in running)

    def take_refused(self, item: str) -> KeptMessage | None:
        """Hand over the message of an item that the queue refused, once; None if messages are not kept."""
        return self._kept.pop(item, None)

    def _requests(self, block: Iterable[tuple[str, Message]]) -> Iterator[list[SendEntry]]:
        entries = (self._entry(item, message) for item, message in block)
        return chunks(
            entries,
            max_items=limits.MAX_QUEUE_MESSAGES,
            size_of=lambda entry: entry.size,
            max_bytes=self.request_bytes,
        )

    def _entry(self, item: str, message: Message) -> SendEntry:
        values, size = self._attributes, self._attribute_bytes
        if message.attributes:
            values, size = _with_item({**(self.attributes or {}), **message.attributes})
        values = {**values, ITEM_ATTRIBUTE: attribute_value(item)}
        body = message.text
        size += size_in_utf8(body) + len(item)
        if size > self.request_bytes:
            raise RequestTooLarge(
                f"the message of item {item} has {size} bytes, but a request may have {self.request_bytes}; "
                "put the content in S3 and send its key"
            )
        fields: dict[str, Any] = {"MessageBody": body, "MessageAttributes": values}
        if message.delay is not None:
            fields["DelaySeconds"] = message.delay
        if self._fifo or self.fair or message.group_id is not None:
            fields["MessageGroupId"] = message.group_id or self.group_id
        if self._fifo:
            fields["MessageDeduplicationId"] = message.dedup_id or item
        return SendEntry(item, size, fields)

    def _request(self, entries: list[SendEntry]) -> tuple[int, dict[str, str]]:
        """Send up to ten messages, repeating entries that failed without being to blame."""
        pending = {str(index): entry for index, entry in enumerate(entries)}
        refused: dict[str, str] = {}
        retry: dict[str, str] = {}
        for attempt in self.backoff:
            try:
                failed = self._batch(pending)
            except (Throttled, ServiceUnavailable):
                if attempt + 1 == self.backoff.tries:
                    raise
                continue
            retry = {}
            for failure in failed:
                reason = refusal_text(failure["Code"], failure.get("Message"))
                where = refused if failure["SenderFault"] else retry
                where[failure["Id"]] = reason
            pending = {key: pending[key] for key in retry}
            if not pending:
                break
        if retry and self.strict:
            raise Throttled(f"{self.queue_url} is busy: {next(iter(retry.values()))}")
        refused |= retry
        reasons = {entries[int(key)].item: why for key, why in refused.items()}
        self.refused |= reasons
        if self.keep:
            self._kept |= {entries[int(key)].item: _kept(entries[int(key)].fields) for key in refused}
        return len(entries) - len(refused), reasons

    def _batch(self, pending: Mapping[str, SendEntry]) -> list[Any]:
        """Send one request, and each message alone if SQS refuses all for what one of them has in it.

        Returns:
            What failed, as in the answer to a request.
        """
        entries: list[Any] = [{"Id": key, **entry.fields} for key, entry in pending.items()]
        with queue_errors(self.queue_url):
            try:
                answer = self.sqs.send_message_batch(QueueUrl=self.queue_url, Entries=entries)
            except ClientError as error:
                code = error_code(error)
                if not blames_content(code):
                    raise
                if len(pending) > 1:
                    return [failure for key in pending for failure in self._alone(key, pending[key])]
                return [{"Id": key, "SenderFault": True, **error.response["Error"]} for key in pending]
        return list(answer.get("Failed", []))

    def _alone(self, key: str, entry: SendEntry) -> list[Any]:
        try:
            return self._batch({key: entry})
        except (Throttled, ServiceUnavailable) as error:  # those before it were sent
            return [{"Id": key, "SenderFault": False, "Code": str(error)}]


def _kept(fields: Mapping[str, Any]) -> KeptMessage:
    """The message of an entry, but for the item id, which a repeat has anew."""
    return kept_message({"body": fields["MessageBody"], "attributes": fields, **fields})


def _with_item(attributes: Mapping[str, Attribute]) -> tuple[dict[str, dict[str, Any]], int]:
    """Attributes as SQS takes them, with one for an item id that is still empty; and the bytes of all."""
    own = {name: value for name, value in attributes.items() if name not in ADDRESSING}
    values = {name: attribute_value(value) for name, value in {**own, ITEM_ATTRIBUTE: ""}.items()}
    size = 0
    for name, value in values.items():
        held = len(value["BinaryValue"]) if "BinaryValue" in value else size_in_utf8(value["StringValue"])
        size += size_in_utf8(name) + len(value["DataType"]) + held
    return values, size


NoteSent: TypeAlias = Callable[[int, SentItems], None]
"""Notes that a queue has the messages of items of a batch; it does not raise."""


class _Block(NamedTuple):
    """A block that is being sent.

    Attributes:
        first: ordinal of its first item.
        stop: one past the last.
        upto: how many messages have been sent or refused when it is done, of all blocks so far.
    """

    first: int
    stop: int
    upto: int


class SentNotes:
    """Notes the blocks of one call of ``send``, each when all of its messages were sent or refused.

    Blocks that follow each other without a gap share one note, which grows: however many blocks, a call of
    ``send`` that nobody interrupts leaves one row. A refused message ends it, since its item was not sent.

    Args:
        batch_id: the batch.
        queue: URL.
        note: writes a note.
    """

    def __init__(self, batch_id: int, queue: str, note: NoteSent) -> None:
        self._batch_id = batch_id
        self._queue = queue
        self._note = note
        self._blocks: deque[_Block] = deque()
        self._entries = 0
        self._answered = 0
        self._start = self._stop = -1

    def begin(self, first: int, stop: int, messages: int) -> None:
        """Note that a block is about to be sent.

        Args:
            first: ordinal of its first item.
            stop: one past the last.
            messages: how many of them are sent; items that were done before are not.
        """
        self._entries += messages
        self._blocks.append(_Block(first, stop, self._entries))

    def answered(self, messages: int, refused: Collection[str]) -> None:
        """Note that the queue has answered a request.

        Args:
            messages: how many it has accepted or refused.
            refused: ids of all items that it has refused so far.
        """
        self._answered += messages
        while self._blocks and self._blocks[0].upto <= self._answered:
            block = self._blocks.popleft()
            for start, stop in _accepted(block, refused):
                if start != self._stop:
                    self._start = start
                self._stop = stop
                self._note(self._batch_id, SentItems(self._queue, self._start, stop))


def _accepted(block: _Block, refused: Collection[str]) -> Iterator[tuple[int, int]]:
    """The ranges of a block without the items that were refused."""
    if not refused:
        return iter([(block.first, block.stop)])
    without = {ordinal for _, ordinal in map(ids.parse_item, refused)}
    return runs(ordinal for ordinal in range(block.first, block.stop) if ordinal not in without)
