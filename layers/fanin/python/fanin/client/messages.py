"""Messages: what a producer sends, and what a consumer receives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fanin.domain.limits import shown
from fanin.domain.totals import with_values
from fanin.entry.kept_messages import in_lambda_form
from fanin.errors import InvalidRequest, ItemDone
from fanin.names import ATTRIBUTE_REPLY_TO, ITEM_ATTRIBUTE
from fanin.wire.json_text import json_text

if TYPE_CHECKING:
    from fanin.client.producing.batch import TrackedBatch

_ITEM: Final = re.compile(r"(?P<batch>[0-9]{1,16}):[^:]+:(?P<index>[0-9]{1,10})")

Attribute: TypeAlias = str | int | float | bytes
"""The value of a message attribute: SQS's types String, Number and Binary."""

Sendable: TypeAlias = "str | Mapping[str, Any] | Message"
"""What a producer may send: a text, an object that is sent as JSON, or a ``Message``."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to send, for producers who need more than a body.

    ::

        batch.send(queue_url, [Message({"row": 7}, attributes={"kind": "import"}, delay=60)])

    Attributes:
        body: the text, or an object that is sent as JSON.
        attributes: message attributes, at most nine: SQS allows ten, and the item id takes one.
        group_id: message group on a FIFO queue; by default the batch id, which keeps the batch in order.
        dedup_id: deduplication id on a FIFO queue; by default the item id.
        delay: seconds until the message can be received, 0 to 900; not allowed on FIFO queues.
    """

    body: str | Mapping[str, Any]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    group_id: str | None = None
    dedup_id: str | None = None
    delay: int | None = None

    @classmethod
    def of(cls, sendable: Sendable) -> Message:
        """Make a message of anything that can be sent."""
        return sendable if isinstance(sendable, Message) else cls(sendable)

    @property
    def text(self) -> str:
        """The body as it is sent.

        Raises:
            InvalidRequest: the body is neither text nor can it be written as JSON.
        """
        if isinstance(self.body, str):
            return self.body
        return json_text("a message's body", self.body)


def attribute_value(value: Attribute) -> dict[str, Any]:
    """A message attribute as SQS's API takes it.

    Raises:
        InvalidRequest: the value is of another type, or a number that is none.
    """
    match value:
        case bytes():
            return {"DataType": "Binary", "BinaryValue": value}
        case str():
            return {"DataType": "String", "StringValue": value}
        case int() | float() if not isinstance(value, bool) and abs(value) < inf:
            return {"DataType": "Number", "StringValue": str(value)}
    raise InvalidRequest(f"a message attribute must be text, bytes or a finite number, not {shown(value)}")


def size_in_utf8(text: str) -> int:
    """How many bytes a text has in UTF-8, in which SQS counts.

    Raises:
        InvalidRequest: it has one half of a surrogate pair, which cannot be sent.
    """
    try:
        return len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"a message's text cannot be sent: it has half of a surrogate pair at {error.start}"
        ) from error


@dataclass(frozen=True)
class ReceivedMessage:
    """A message for a consumer, the same whether it comes in a Lambda event or from polling.

    Attributes:
        message_id: the id that SQS gave to it.
        body: the text.
        item: its item id; None if the message belongs to no batch.
        attributes: its message attributes by name, as text; binary ones are left out.
        group_id: its message group; None if it has none.
        receive_count: how often it was received, this time included.
        raw: the record as Lambda or SQS delivered it.
        totals: what ``add`` was given, by the names of the totals.
        batch: makes its batch, for ``add_items``; None outside of a consumer, or if it has no item.
    """

    message_id: str
    body: str
    item: str | None
    attributes: Mapping[str, str]
    group_id: str | None
    receive_count: int
    raw: Mapping[str, Any]
    totals: dict[str, int] = field(default_factory=dict, compare=False)
    batch: Callable[[], TrackedBatch] | None = field(default=None, compare=False, repr=False)

    def add(self, **values: int) -> None:
        """Add to the totals of the batch, such as ``message.add(rows=812, cents=-5)``.

        The values are acknowledged with the item. They count once, however often the message is delivered:
        those of the first acknowledgement count. Several calls add up.

        Args:
            values: a whole number within ±2⁵³ for each total that the batch was opened with.

        Raises:
            InvalidRequest: a value, or its sum with the earlier ones, is not such a number; nothing is added.
        """
        self.totals.update(with_values(self.totals, values))

    def add_items(self, messages: Iterable[Sendable], queue_url: str, **options: Any) -> int:
        """Add an item for each of some messages to the batch of this message, and send them.

        The batch may drain: it takes what its pending items add until all that it has are done. In each
        delivery the handler must add the same messages in the same order: their items are found again by the
        id of this one. So another delivery adds nothing twice, and sends only what no note says was sent. One
        that comes after the item was marked adds nothing: this raises ``ItemDone``, and the consumer drops
        the message.

        Args:
            messages: as in ``TrackedBatch.send``.
            queue_url: the SQS queue.
            options: those of ``TrackedBatch.send``.

        Returns:
            How many messages were sent.

        Raises:
            ItemDone: the item was marked before.
            BatchClosed: the batch takes no more items, or has ended.
            MaxItemsReached: the batch has as many items as it takes; in a handler that lets it pass it fails
                the item.
            IdempotencyKeyReused: an earlier delivery has added another number of messages here.
            InvalidRequest: this is not a message that a consumer handles, or it belongs to no batch.
        """
        if self.batch is None:
            raise InvalidRequest(
                "only the handler of a message with an item id can add items to its batch; elsewhere, pass"
                " the item to tracker.add"
            )
        try:
            return self.batch().send(queue_url, messages, **options)
        except ItemDone as done:
            done.item = self.item
            raise

    @property
    def expects_reply(self) -> bool:
        """Whether it belongs to a scatter, so that only a reply marks its item done."""
        return ATTRIBUTE_REPLY_TO in self.attributes

    @cached_property
    def batch_id(self) -> int | None:
        """Id of its batch; None if it has no item, or an id that is malformed."""
        place = _ITEM.fullmatch(self.item or "")
        return None if place is None else int(place["batch"])

    @property
    def index(self) -> int | None:
        """Index of its item within the item's group; None if it has no item, or an id that is malformed."""
        place = _ITEM.fullmatch(self.item or "")
        return None if place is None else int(place["index"])

    def json(self) -> Any:
        """The body, parsed.

        Raises:
            json.JSONDecodeError: the body is not JSON.
        """
        return json.loads(self.body)


def sqs_records(event: Any) -> list[Mapping[str, Any]]:
    """The records of an SQS event as Lambda passes it; the list may be empty.

    Raises:
        InvalidRequest: the event does not have the form of an SQS event.
    """
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list):
        raise InvalidRequest(
            'this is not an event of SQS, which has the form {"Records": [...]}; map a queue to this function'
        )
    for record in records:
        if not isinstance(record, Mapping) or "messageId" not in record:
            source = record.get("eventSource") if isinstance(record, Mapping) else None
            raise InvalidRequest(
                f"a record of this event comes from {source or 'an unknown source'}, not from SQS: it has no "
                "messageId; map a queue to this function"
            )
    return records


def read_message(raw: Mapping[str, Any]) -> ReceivedMessage:
    """Read a message, as Lambda or SQS delivered it."""
    message = in_lambda_form(raw)
    values = {
        name: in_lambda_form(value).get("stringValue")
        for name, value in message.get("messageAttributes", {}).items()
    }
    attributes = {name: text for name, text in values.items() if text is not None}
    system = message.get("attributes", {})
    return ReceivedMessage(
        message_id=message["messageId"],
        body=message["body"],
        item=attributes.get(ITEM_ATTRIBUTE),
        attributes=attributes,
        group_id=system.get("MessageGroupId"),
        receive_count=int(system.get("ApproximateReceiveCount", "1")),
        raw=raw,
    )
