"""Scatter-gather: the calls that ``tracker.scatters`` has."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from fanin.app.api import Scatters
from fanin.client.conversions import Duration, seconds, targets
from fanin.client.messages import ReceivedMessage
from fanin.client.sqs import SQSClient, queue_errors
from fanin.domain import scatter
from fanin.domain.claim_checks import ClaimCheck, ClaimCheckRequest
from fanin.domain.limits import MAX_REPLIES
from fanin.domain.paging import pages
from fanin.domain.targets import Target
from fanin.domain.totals import check_names, with_values
from fanin.errors import InvalidRequest
from fanin.names import ATTRIBUTE_REPLY_TO
from fanin.wire import patterns as wire
from fanin.wire.json_text import json_text

To: TypeAlias = "str | Iterable[str | scatter.Recipient]"
"""Whom to send to: a topic of the directory, or recipients.

A recipient is a queue's URL or ARN, a registration as ``topic/name``, or a ``Recipient``, which has a name.
"""


class ScatterCalls:
    """Sends a message to many recipients and gathers their replies; a tracker has one as ``scatters``.

    ::

        started = tracker.scatters.start("cars", {"week": 47}, quorum=0.9)
        for reply in tracker.scatters.replies(started.batch.batch_id):
            print(reply.name, reply.payload)

    Every call may raise the errors of ``fanin.errors`` that ``fanin.app.api.Scatters`` names.

    Args:
        service: the service itself.
        sqs: makes the client for replies that are sent through a queue.
    """

    def __init__(self, service: Scatters, sqs: Callable[[], SQSClient]) -> None:
        self._service = service
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
        timeout: Duration = scatter.TIMEOUT,
        max_retries: int = scatter.MAX_RETRIES,
        quorum: float | None = None,
        user_key: str = "",
        metadata: Mapping[str, str] | None = None,
        on_end: Iterable[Target | Mapping[str, Any]] = (),
        totals: Iterable[str] = (),
        key: str | None = None,
    ) -> scatter.Scattered:
        """Send a message to many recipients, and gather their replies.

        The members of a topic of more than 10,000 are listed after this call has returned; until then the
        scatter is ``starting``.

        Args:
            to: a topic of the directory; or recipients: queues by URL or ARN, each tagged ``fanin:channel``,
                and registrations as ``topic/name``.
            body: a text, or an object that is sent as JSON.
            where: attributes that a registration of the topic must have.
            type: tells recipients what is asked; a message attribute.
            attributes: more message attributes, at most six.
            correlation_id: your own; no scatter that has not ended may have it.
            timeout: how long to wait until the message is sent again to those who have not replied, or until
                they are given up; a timedelta, or seconds.
            max_retries: how often the message is sent again.
            quorum: how many replies are enough: an integer counts them, a float from 0 to 1 is their share. A
                number of more than there are recipients stands for all of them.
            user_key: your own name for the scatter, returned with its event.
            metadata: small map of strings, returned with its event.
            on_end: who is called back when the scatter ends, up to five; see ``Tracker.open``.
            totals: names of up to four whole numbers that replies bring, and that are summed up.
            key: idempotency key: repeating the same request with the same key returns the same scatter.

        Raises:
            CorrelationIdAlive: a scatter with this correlation id has not ended.
            ChannelRefused: a recipient is not a queue that fanin may send to.
            IdempotencyKeyReused: the key was used for a different request.
            NotRegistered: a recipient is a registration that does not exist.
        """
        waits = seconds(timeout)
        return self._service.start(
            scatter.Scatter(
                body=body if isinstance(body, str) else json_text("body", body),
                topic=to if isinstance(to, str) else None,
                recipients=() if isinstance(to, str) else [_recipient(one) for one in to],
                where=where or {},
                type=type,
                attributes=attributes or {},
                correlation_id=correlation_id,
                timeout=scatter.TIMEOUT if waits is None else waits,
                max_retries=max_retries,
                quorum=quorum,
                user_key=user_key,
                metadata=metadata or {},
                on_end=targets(on_end),
                totals=check_names(totals),
            ),
            key=key,
        )

    def status(self, batch_id: int) -> scatter.Scattered:
        """Read a scatter, with how many replied, failed and are missing, counted exactly."""
        return self._service.status(batch_id)

    def replies(self, batch_id: int) -> Iterator[scatter.GatheredReply]:
        """All replies so far, in the order of the recipients, read a page at a time."""
        for page in pages(self.replies_page, batch_id):
            yield from page.replies

    def replies_page(
        self, batch_id: int, *, cursor: str | None = None, limit: int = MAX_REPLIES
    ) -> scatter.Gathered:
        """Read one page of the replies; ``replies`` gives all.

        Args:
            batch_id: the scatter.
            cursor: the cursor of the page before; None reads the first page.
            limit: most replies of a page, up to 100; a page has fewer if they are large.
        """
        return self._service.replies(batch_id, cursor=cursor, limit=limit)

    def missing_recipients(self, batch_id: int) -> Iterator[scatter.MissingRecipient]:
        """All recipients that have neither replied nor failed, in their order, read a page at a time.

        To see every recipient at least once while replies come in, read the missing ones first, then the
        failed ones, then the replies.
        """
        for page in pages(self._service.missing_recipients, batch_id, limit=MAX_REPLIES):
            yield from page.recipients

    def failed_recipients(self, batch_id: int) -> Iterator[scatter.FailedRecipient]:
        """All recipients that failed, in their order, each with the reason, read a page at a time."""
        for page in pages(self._service.failed_recipients, batch_id, limit=MAX_REPLIES):
            yield from page.recipients

    def reply(
        self,
        message: ReceivedMessage | str,
        payload: Any = None,
        *,
        claim: str | None = None,
        totals: Mapping[str, int] | None = None,
    ) -> scatter.ReplyReceipt:
        """Reply to a message, which marks its item done.

        Args:
            message: as it was received, or its item id.
            payload: any JSON value of up to 200 KB.
            claim: instead of a payload, the key of one that was uploaded; see ``claim``.
            totals: what the reply brings to the totals of the scatter, besides what ``message.add`` got.

        Returns:
            Whether this reply is the one that counts (``first``), or is a repeat, or came too late.

        Raises:
            InvalidRequest: the message has no item id, or the payload is not a JSON value.
            RequestTooLarge: the payload is too large; upload it and send its claim.
        """
        json_text("payload", payload)
        (receipt,) = self._service.reply([_reply(message, payload, claim, totals)])
        return receipt

    def reply_later(
        self,
        message: ReceivedMessage,
        payload: Any = None,
        *,
        claim: str | None = None,
        totals: Mapping[str, int] | None = None,
    ) -> None:
        """Reply to a message through the reply queue, which is cheaper and needs no answer.

        Args:
            message: as it was received; one of its attributes names the queue.
            payload: any JSON value of up to 200 KB.
            claim: instead of a payload, the key of one that was uploaded; see ``claim``.
            totals: what the reply brings to the totals of the scatter, besides what ``message.add`` got.

        Raises:
            InvalidRequest: the message names no reply queue, or has no item id, or the payload is not a JSON
                value.
        """
        json_text("payload", payload)
        queue = message.attributes.get(ATTRIBUTE_REPLY_TO)
        if not queue:
            raise InvalidRequest(
                f"the message names no queue for replies in its attribute {ATTRIBUTE_REPLY_TO}; use reply"
            )
        body = wire.REPLIES.encode([_reply(message, payload, claim, totals)])
        with queue_errors(queue):
            self._sqs().send_message(QueueUrl=queue, MessageBody=json.dumps(body, separators=(",", ":")))

    def claim(self, message: ReceivedMessage | str, size: int, content_type: str) -> ClaimCheck:
        """Ask where to upload a payload that is too large for a reply; then reply with the claim's key.

        Args:
            message: the message to reply to, or its item id.
            size: bytes of the payload.
            content_type: its media type, such as ``application/json``.
        """
        return self._service.claim(ClaimCheckRequest(_item(message), size, content_type))


def _recipient(one: str | scatter.Recipient) -> scatter.Recipient:
    return scatter.Recipient("", one) if isinstance(one, str) else one


def _reply(
    message: ReceivedMessage | str, payload: Any, claim: str | None, totals: Mapping[str, int] | None
) -> scatter.Reply:
    before = {} if isinstance(message, str) else message.totals
    return scatter.Reply(_item(message), payload, claim, with_values(before, totals or {}))


def _item(message: ReceivedMessage | str) -> str:
    item = message if isinstance(message, str) else message.item
    if item is None:
        raise InvalidRequest(
            "the message has no item id, so it belongs to no scatter and cannot be replied to"
        )
    return item
