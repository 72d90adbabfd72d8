"""Scatter-gather for people: what a tracker's ``scatters`` offers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from fanin.app.api import Scatters
from fanin.client.friendly import Span, seconds
from fanin.client.messages import ReceivedMessage
from fanin.client.paging import followed
from fanin.client.queues import queue_errors
from fanin.domain.limits import MAX_REPLIES
from fanin.domain.scatter import (
    MAX_RETRIES,
    TIMEOUT,
    ClaimCheck,
    ClaimCheckRequest,
    FailedRecipient,
    GatheredReply,
    MissingRecipient,
    Recipient,
    Reply,
    ReplyReceipt,
    Scatter,
    Scattered,
)
from fanin.errors import InvalidRequest
from fanin.names import ATTRIBUTE_REPLY_TO
from fanin.wire import scatters as wire

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

To: TypeAlias = "str | Iterable[str | Recipient]"
"""Whom to send to: a topic; or queues by URL or ARN, registrations as ``topic/name``, or ``Recipient``."""


class ScatterCalls:
    """Scatter-gather for people: what a tracker's ``scatters`` offers.

    Args:
        scatters: the calls themselves.
        sqs: gives the client that replies by queue are sent with.
    """

    def __init__(self, scatters: Scatters, sqs: Callable[[], SQSClient]) -> None:
        self.calls = scatters
        self._sqs = sqs

    def start(
        self,
        to: To,
        body: str | Mapping[str, Any],
        *,
        where: Mapping[str, str] | None = None,
        type: str = "",  # noqa: A002  what it is called on the wire
        attributes: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
        timeout: Span = TIMEOUT,
        max_retries: int = MAX_RETRIES,
        quorum: float | None = None,
        user_key: str = "",
        metadata: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Scattered:
        """Send a message to many, and gather their replies.

        A topic of over 10,000 is listed by the service after the call; the answer is ``starting`` then.

        Args:
            to: a topic of the directory; or some of its registrations, as ``topic/name``, and queues by URL
                or ARN, each tagged ``fanin:channel``.
            body: text, or an object that is sent as JSON.
            where: attributes that a registration of the topic must have.
            type: tells recipients what is asked.
            attributes: more message attributes, at most six.
            correlation_id: your own, which no living scatter has.
            timeout: until what is missing is sent again, or given up; a timedelta or seconds.
            max_retries: how often it is sent again.
            quorum: enough replies: a number of them (an integer), or a share between 0 and 1.
            user_key: your own name for it, returned with its event.
            metadata: small map of strings, returned with its event.
            key: idempotency key: the same request with it, repeated, finds the same scatter.

        Raises:
            CorrelationIdAlive: a scatter of that correlation id has not ended.
            ChannelRefused: a recipient is no queue that fanin may send to.
            IdempotencyKeyReused: the key was used for another request.
            NotRegistered: a recipient is named by a registration that is not there.
        """
        span = seconds(timeout)
        return self.calls.start(
            Scatter(
                body=body if isinstance(body, str) else json.dumps(body, ensure_ascii=False),
                topic=to if isinstance(to, str) else None,
                recipients=() if isinstance(to, str) else [_recipient(one) for one in to],
                where=where or {},
                type=type,
                attributes=attributes or {},
                correlation_id=correlation_id,
                timeout=TIMEOUT if span is None else span,
                max_retries=max_retries,
                quorum=quorum,
                user_key=user_key,
                metadata=metadata or {},
            ),
            key=key,
        )

    def status(self, batch_id: int) -> Scattered:
        """How far a scatter is, counted exactly."""
        return self.calls.status(batch_id)

    def replies(self, batch_id: int) -> Iterator[GatheredReply]:
        """All replies so far, in the order of the recipients, read a page at a time."""
        for page in followed(lambda cursor: self.calls.replies(batch_id, cursor=cursor, limit=MAX_REPLIES)):
            yield from page.replies

    def missing_recipients(self, batch_id: int) -> Iterator[MissingRecipient]:
        """All recipients that have neither replied nor failed, in their order, read a page at a time.

        To see every recipient at least once while replies come in, read the missing ones first, then the
        failed ones, then the replies.
        """
        for page in followed(
            lambda cursor: self.calls.missing_recipients(batch_id, cursor=cursor, limit=MAX_REPLIES)
        ):
            yield from page.recipients

    def failed_recipients(self, batch_id: int) -> Iterator[FailedRecipient]:
        """All recipients that failed, in their order, each with the reason, read a page at a time."""
        for page in followed(
            lambda cursor: self.calls.failed_recipients(batch_id, cursor=cursor, limit=MAX_REPLIES)
        ):
            yield from page.recipients

    def reply(
        self, message: ReceivedMessage | str, payload: Any = None, *, claim: str | None = None
    ) -> ReplyReceipt:
        """Answer a message, which marks its item done.

        Args:
            message: as it was received, or its item id.
            payload: any JSON value of up to 200 KB.
            claim: key of a payload that was uploaded; see ``claim``.

        Returns:
            Whether this answer is the one that counts (``first``), or came again, or too late.
        """
        (receipt,) = self.calls.reply([Reply(_item(message), payload, claim)])
        return receipt

    def reply_later(self, message: ReceivedMessage, payload: Any = None, *, claim: str | None = None) -> None:
        """Answer a message through the queue that it names for replies.

        Raises:
            InvalidRequest: it names none.
        """
        queue = message.attributes.get(ATTRIBUTE_REPLY_TO)
        if not queue:
            raise InvalidRequest("the message names no queue for replies; use reply")
        body = wire.encode_replies([Reply(_item(message), payload, claim)])
        with queue_errors(queue):
            self._sqs().send_message(QueueUrl=queue, MessageBody=json.dumps(body, separators=(",", ":")))

    def claim(self, message: ReceivedMessage | str, size: int, content_type: str) -> ClaimCheck:
        """Where to upload a payload of more than 200 KB; reply with the claim's key afterwards."""
        return self.calls.claim(ClaimCheckRequest(_item(message), size, content_type))


def _recipient(one: str | Recipient) -> Recipient:
    return Recipient("", one) if isinstance(one, str) else one


def _item(message: ReceivedMessage | str) -> str:
    item = message if isinstance(message, str) else message.item
    if item is None:
        raise InvalidRequest("the message has no item id: it is of no scatter")
    return item
