"""The ack queue and dead-letter queues: many messages become one call of the ledger.

A poison message does not hold up the others: a call that is refused is halved until the bad message stands
alone. What overload has left comes again after a pause that grows; the queue allows for a day of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.app.api import Ledger
from fanin.app.bisect import REFUSALS, bisect
from fanin.domain import limits
from fanin.domain.acks import Acks, Failure, dead_letter_reason, join
from fanin.entry.http.validation import parse
from fanin.entry.invocation import INVOCATION
from fanin.entry.observe import count, count_receipts, logger
from fanin.entry.partial_batch import Message, partial_batch_response
from fanin.errors import (
    FaninError,
    InvalidRequest,
    OutcomeUnknown,
    PartlyMarked,
    ServiceUnavailable,
    Throttled,
)
from fanin.wire.items import QUEUED_ACKS

Park: TypeAlias = Callable[[Message], None]
"""Sends a message that cannot be handled to a queue for people to look at; raises if that fails."""

Postpone: TypeAlias = Callable[[Sequence[tuple[Message, int]]], None]
"""Lets messages come again after so many seconds; if it raises, they come after their queue's timeout."""

PAUSES: Final = Backoff(base=20, cap=900)
"""Seconds until a message that overload left unmarked comes again, by how often it was received."""
LEAST_PAUSE: Final = 5

Accepted: TypeAlias = tuple[Message, Acks]
"""A message and its decoded body."""


@dataclass
class _Unhandled:
    """Messages that were not handled.

    Attributes:
        poison: refused because of their content, so another delivery would fail too.
        postponed: not known to be at fault; another delivery may succeed.
        overload: those of ``postponed`` for which there was no capacity or no time; they come again sooner.
    """

    poison: list[Message] = field(default_factory=list)
    postponed: list[Message] = field(default_factory=list)
    overload: list[Message] = field(default_factory=list)

    def refuse(self, message: Message, error: FaninError) -> None:
        logger.warning("message refused", extra={"message_id": message["messageId"], "code": error.code})
        self.poison.append(message)

    def postpone(self, messages: Sequence[Message], error: Exception) -> None:
        if isinstance(error, FaninError):
            logger.warning("messages postponed", extra={"messages": len(messages), "code": error.code})
        else:  # a defect, which this one message brought to light
            logger.error("message failed", exc_info=error, extra={"message_id": messages[0]["messageId"]})
        self.postponed += messages
        if isinstance(error, Throttled | ServiceUnavailable):
            self.overload += messages

    def response(self, park: Park, postpone: Postpone) -> dict[str, Any]:
        """The partial batch response, after poison was parked and overload was postponed."""
        for message in self.poison:
            try:
                park(message)
            except Exception:  # noqa: BLE001  the other messages must be handled all the same
                logger.exception("not parked", extra={"message_id": message["messageId"]})
                self.postponed.append(message)
            else:
                count(names.METRIC_PARKED)
        try:
            postpone([(message, _pause(message)) for message in self.overload])
        except Exception:  # noqa: BLE001
            logger.exception("not postponed: messages come again after the timeout of their queue")
        count(names.METRIC_POSTPONED, len(self.overload))
        return partial_batch_response(message["messageId"] for message in self.postponed)


def acknowledge(event: Message, ledger: Ledger, park: Park, postpone: Postpone) -> dict[str, Any]:
    """Mark the items that messages of the ack queue name.

    Args:
        event: what Lambda hands over; each body is that of ``POST /v1/acks``, with or without failures.
        ledger: marks the items.
        park: sends poison messages to the dead-letter queue, which they would reach after all tries anyway.
        postpone: changes when messages come again.

    Returns:
        The partial batch response: messages with unmarked items, and those that could not be parked now.
    """
    unhandled = _Unhandled()
    accepted: list[Accepted] = []
    for message in event["Records"]:
        try:
            accepted.append((message, parse(QUEUED_ACKS, message["body"])))
        except InvalidRequest as error:
            unhandled.refuse(message, error)
    _mark(ledger, accepted, unhandled)
    return unhandled.response(park, postpone)


def fail_dead_letters(event: Message, ledger: Ledger, park: Park, postpone: Postpone) -> dict[str, Any]:
    """Fail the items whose messages ended in a dead-letter queue, so that their batches can complete.

    The first mark of an item decides, so an item that was done stays done. A message is parked if it has no
    item id, or one that is refused, or if its batch does not exist any more.

    Args:
        event: what Lambda hands over, from one or several dead-letter queues.
        ledger: fails the items.
        park: keeps the messages that cannot be handled.
        postpone: changes when messages come again.

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
    return unhandled.response(park, postpone)


def _reason(message: Message) -> str:
    attributes = message["attributes"]
    queue = attributes.get("DeadLetterQueueSourceArn", message["eventSourceARN"]).rpartition(":")[2]
    return dead_letter_reason(attributes["ApproximateReceiveCount"], queue)


def _mark(ledger: Ledger, accepted: Sequence[Accepted], unhandled: _Unhandled) -> None:
    """Mark what the messages say, with as few calls of the ledger as its limits allow."""

    def apply(window: Sequence[Accepted]) -> None:
        if INVOCATION.seconds_left() <= 0:
            raise Throttled("the time of this invocation is up")
        for error, left in _apply(ledger, window):
            if isinstance(error, OutcomeUnknown):
                for message, _ in left:
                    unhandled.refuse(message, error)
            else:
                unhandled.postpone([message for message, _ in left], error)

    for window in _windows(accepted):
        for failed in bisect(window, apply, on_defect=True):
            messages = [message for message, _ in failed.items]
            if isinstance(failed.error, REFUSALS):
                unhandled.refuse(messages[0], failed.error)
            else:
                unhandled.postpone(messages, failed.error)


def _apply(ledger: Ledger, window: Sequence[Accepted]) -> list[tuple[FaninError, list[Accepted]]]:
    """Fail and acknowledge in one call each.

    Failures go first, because they may be repeated freely: if they do not go through, the counts of the same
    message, which may not be repeated, have not been written yet.

    Returns:
        Messages with unmarked items, and the reason for each.
    """
    left: list[tuple[FaninError, list[Accepted]]] = []
    if failing := [one for one in window if one[1].failures]:
        try:
            receipts = ledger.fail(join(acks for _, acks in failing).failures)
        except PartlyMarked as partly:
            receipts = partly.receipts
            left.append((partly, _with(partly.rest, failing)))
        except (Throttled, ServiceUnavailable) as error:
            receipts = []
            left.append((error, failing))
        count(names.METRIC_FAILED, sum(receipt.first for receipt in receipts))
    late = {message["messageId"] for _, messages in left for message, _ in messages}
    acking = [one for one in window if one[0]["messageId"] not in late]
    marks = join(acks for _, acks in acking)
    if _marks(marks):
        try:
            count_receipts(ledger.ack(marks.items, ranges=marks.ranges, counts=marks.counts))
        except PartlyMarked as partly:
            count_receipts(partly.receipts)
            left.append((partly, _with(partly.rest, acking)))
        except (Throttled, ServiceUnavailable) as error:
            left.append((error, [one for one in acking if _marks(one[1])]))
        except OutcomeUnknown as unknown:  # a repeat may count again: an operator decides
            left.append((unknown, [one for one in acking if one[1].counts]))
            again = Throttled(f"a count of the same window has an unknown outcome: {unknown}")
            left.append((again, [one for one in acking if _marks(one[1]) and not one[1].counts]))
    return left


def _marks(acks: Acks) -> bool:
    return bool(acks.items or acks.ranges or acks.counts)


def _with(rest: Acks, window: Iterable[Accepted]) -> list[Accepted]:
    """The messages that name something of the rest of a call."""
    items, failures = set(rest.items), {failure.item for failure in rest.failures}
    ranges, counts = {(r.group, r.start) for r in rest.ranges}, {c.batch_id for c in rest.counts}
    return [
        (message, acks)
        for message, acks in window
        if not items.isdisjoint(acks.items)
        or any(failure.item in failures for failure in acks.failures)
        or any((r.group, r.start) in ranges for r in acks.ranges)
        or any(c.batch_id in counts for c in acks.counts)
    ]


def _pause(message: Message) -> int:
    received = int(message.get("attributes", {}).get("ApproximateReceiveCount", 1))
    return int(PAUSES.delay(received - 1, at_least=LEAST_PAUSE))


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
