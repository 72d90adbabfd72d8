"""The ack queue and dead-letter queues: many messages become one call of the ledger.

A poison message does not hold up the others: a call that is refused is halved until the bad message stands
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from fanin import names
from fanin.app.api import Ledger
from fanin.app.bisect import REFUSALS, bisect
from fanin.domain import limits
from fanin.domain.acks import Acks, Failure, dead_letter_reason
from fanin.entry.http.validation import parse
from fanin.entry.observe import count, count_receipts, logger
from fanin.entry.partial_batch import Message, partial_batch_response
from fanin.errors import FaninError, InvalidRequest
from fanin.wire.items import QUEUED_ACKS

Park: TypeAlias = Callable[[Message], None]
"""Sends a message that cannot be handled to a queue for people to look at; raises if that fails."""

Accepted: TypeAlias = tuple[Message, Acks]
"""A message and its decoded body."""

T = TypeVar("T")


@dataclass
class _Unhandled:
    """Messages that were not handled.

    Attributes:
        poison: refused because of their content, so another delivery would fail too.
        postponed: not known to be at fault; another delivery may succeed.
    """

    poison: list[Message] = field(default_factory=list)
    postponed: list[Message] = field(default_factory=list)

    def refuse(self, message: Message, error: FaninError) -> None:
        logger.warning("message refused", extra={"message_id": message["messageId"], "code": error.code})
        self.poison.append(message)

    def postpone(self, messages: Sequence[Message], error: Exception) -> None:
        if isinstance(error, FaninError):
            logger.warning("messages postponed", extra={"messages": len(messages), "code": error.code})
        else:  # a defect, which this one message brought to light
            logger.error("message failed", exc_info=error, extra={"message_id": messages[0]["messageId"]})
        self.postponed += messages


def acknowledge(event: Message, ledger: Ledger) -> dict[str, Any]:
    """Mark the items that messages of the ack queue name.

    Args:
        event: what Lambda hands over; each body is that of ``POST /v1/acks``, with or without failures.
        ledger: marks the items.

    Returns:
        The partial batch response. It includes poison messages, so that the queue's redrive policy moves
        them to the dead-letter queue.
    """
    unhandled = _Unhandled()
    accepted: list[Accepted] = []
    for message in event["Records"]:
        try:
            accepted.append((message, parse(QUEUED_ACKS, message["body"])))
        except InvalidRequest as error:
            unhandled.refuse(message, error)
    _mark(ledger, accepted, unhandled)
    return _response(unhandled.poison + unhandled.postponed)


def fail_dead_letters(event: Message, ledger: Ledger, park: Park) -> dict[str, Any]:
    """Fail the items whose messages ended in a dead-letter queue, so that their batches can complete.

    A message without an item id, or whose item id is refused, is parked.

    Args:
        event: what Lambda hands over, from one or several dead-letter queues.
        ledger: fails the items.
        park: keeps the messages that cannot be handled.

    Returns:
        The partial batch response: messages that could be neither handled nor parked now.
    """
    unhandled = _Unhandled()
    accepted: list[Accepted] = []
    for message in event["Records"]:
        item = message.get("messageAttributes", {}).get(names.ITEM_ATTRIBUTE, {}).get("stringValue")
        if item:
            accepted.append((message, Acks(failures=[Failure(item, _reason(message))])))
        else:
            unhandled.refuse(message, InvalidRequest(f"no message attribute {names.ITEM_ATTRIBUTE}"))
    _mark(ledger, accepted, unhandled)
    for message in unhandled.poison:
        try:
            park(message)
        except FaninError as error:
            logger.warning("not parked", extra={"message_id": message["messageId"], "code": error.code})
            unhandled.postponed.append(message)
        else:
            count(names.METRIC_PARKED)
    return _response(unhandled.postponed)


def _reason(message: Message) -> str:
    attributes = message["attributes"]
    queue = attributes.get("DeadLetterQueueSourceArn", message["eventSourceARN"]).rpartition(":")[2]
    return dead_letter_reason(attributes["ApproximateReceiveCount"], queue)


def _mark(ledger: Ledger, accepted: Sequence[Accepted], unhandled: _Unhandled) -> None:
    """Mark what the messages say, with as few calls of the ledger as its limits allow."""

    def apply(window: Sequence[Accepted]) -> None:
        _apply(ledger, [acks for _, acks in window])

    for window in _windows(accepted):
        for failed in bisect(window, apply, on_defect=True):
            messages = [message for message, _ in failed.items]
            if isinstance(failed.error, REFUSALS):
                unhandled.refuse(messages[0], failed.error)
            else:
                unhandled.postpone(messages, failed.error)


def _apply(ledger: Ledger, parts: Sequence[Acks]) -> None:
    """Fail and acknowledge in one call each.

    Failures go first, because they may be repeated freely: if they do not go through, the counts of the same
    message, which may not be repeated, have not been written yet.
    """
    failures = _join(acks.failures for acks in parts)
    if failures:
        receipts = ledger.fail(failures)
        count(names.METRIC_FAILED, sum(receipt.first for receipt in receipts))
    items, ranges = _join(acks.items for acks in parts), _join(acks.ranges for acks in parts)
    counts = _join(acks.counts for acks in parts)
    if items or ranges or counts:
        count_receipts(ledger.ack(items, ranges=ranges, counts=counts))


def _join(parts: Iterable[Sequence[T]]) -> list[T]:
    return [value for part in parts for value in part]


def _windows(accepted: Sequence[Accepted]) -> Iterator[list[Accepted]]:
    """Cut the messages into windows that fit one call; a message that alone exceeds a limit stands alone."""
    most = (limits.MAX_IDS, limits.MAX_RANGES, limits.MAX_COUNTS, limits.MAX_FAILURES)
    window: list[Accepted] = []
    load: tuple[int, ...] = (0, 0, 0, 0)
    for message, acks in accepted:
        sizes: tuple[int, ...] = (len(acks.items), len(acks.ranges), len(acks.counts), len(acks.failures))
        total = tuple(a + b for a, b in zip(load, sizes, strict=True))
        if window and any(a > b for a, b in zip(total, most, strict=True)):
            yield window
            window, total = [], sizes
        window.append((message, acks))
        load = total
    if window:
        yield window


def _response(messages: Iterable[Message]) -> dict[str, Any]:
    return partial_batch_response(message["messageId"] for message in messages)
