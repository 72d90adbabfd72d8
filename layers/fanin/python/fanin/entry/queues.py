"""SQS: messages of the ack queue and of dead-letter queues, many merged to one call of the ledger.

A message that is refused spoils no other: what was merged is then halved, until the bad one stands alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from fanin import names
from fanin.app.api import Ledger
from fanin.domain import limits
from fanin.domain.acks import Acks, Failure, dead_letter_reason
from fanin.entry.http.validation import parse
from fanin.entry.observe import count, count_receipts, logger
from fanin.errors import BatchGone, BatchNotFound, FaninError, InvalidRequest
from fanin.wire.ledger import decode_acks

Message: TypeAlias = Mapping[str, Any]
Park: TypeAlias = Callable[[Message], None]
T = TypeVar("T")


@dataclass
class Outcome:
    """What became of messages.

    Attributes:
        refused: can never be handled as they are.
        postponed: could not be handled now; worth another try.
    """

    refused: list[Message] = field(default_factory=list)
    postponed: list[Message] = field(default_factory=list)


def acknowledge(event: Message, ledger: Ledger) -> dict[str, Any]:
    """Handle the messages of the ack queue: the bodies of acknowledgements, with or without failures.

    Returns:
        The partial batch response. Refused messages are in it too, since the queue sends a message that
        keeps coming back to its dead-letter queue.
    """
    outcome = Outcome()
    accepted: list[tuple[Message, Acks]] = []
    for message in event["Records"]:
        try:
            accepted.append((message, decode_acks(parse("QueuedAcks", message["body"]))))
        except InvalidRequest as error:
            _refuse(outcome, message, error)
    for window in _windows(accepted):
        _mark(ledger, window, outcome)
    return _failures(outcome.refused + outcome.postponed)


def fail_dead(event: Message, ledger: Ledger, park: Park) -> dict[str, Any]:
    """Handle dead letters: fail the items that died with them, so that their batches end.

    A message without an item id, or with one that is refused, is parked, not lost.

    Args:
        event: of Lambda, from dead-letter queues.
        ledger: fails the items.
        park: sends a message to the queue of those that nobody can handle.

    Returns:
        The partial batch response: messages to try again.
    """
    outcome = Outcome()
    accepted: list[tuple[Message, Acks]] = []
    for message in event["Records"]:
        item = message.get("messageAttributes", {}).get(names.ITEM_ATTRIBUTE, {}).get("stringValue")
        if item:
            accepted.append((message, Acks(failures=[Failure(item, _epitaph(message))])))
        else:
            _refuse(outcome, message, InvalidRequest(f"no message attribute {names.ITEM_ATTRIBUTE}"))
    for window in _windows(accepted):
        _mark(ledger, window, outcome)
    for message in outcome.refused:
        try:
            park(message)
        except FaninError as error:
            logger.warning("not parked", extra={"message_id": message["messageId"], "code": error.code})
            outcome.postponed.append(message)
        else:
            count(names.METRIC_PARKED)
    return _failures(outcome.postponed)


def _epitaph(message: Message) -> str:
    attributes = message["attributes"]
    queue = attributes.get("DeadLetterQueueSourceArn", message["eventSourceARN"]).rpartition(":")[2]
    return dead_letter_reason(attributes["ApproximateReceiveCount"], queue)


def _mark(ledger: Ledger, window: Sequence[tuple[Message, Acks]], outcome: Outcome) -> None:
    """Mark what the messages say, in one call of each kind; halve them if that is refused.

    Failures go first: they are the part that may be repeated freely, and a message whose failures did not
    go through must not count its acknowledgements yet.
    """
    try:
        _apply(ledger, [acks for _, acks in window])
    except (InvalidRequest, BatchNotFound, BatchGone) as error:
        if len(window) == 1:
            _refuse(outcome, window[0][0], error)
        else:
            _halve(ledger, window, outcome)
    except FaninError as error:  # not the messages' fault
        logger.warning("messages postponed", extra={"messages": len(window), "code": error.code})
        outcome.postponed += [message for message, _ in window]
    except Exception:  # noqa: BLE001  a defect that one message brings to light; spare the others
        if len(window) == 1:
            logger.exception("message failed", extra={"message_id": window[0][0]["messageId"]})
            outcome.postponed.append(window[0][0])
        else:
            _halve(ledger, window, outcome)


def _halve(ledger: Ledger, window: Sequence[tuple[Message, Acks]], outcome: Outcome) -> None:
    half = len(window) // 2
    _mark(ledger, window[:half], outcome)
    _mark(ledger, window[half:], outcome)


def _apply(ledger: Ledger, parts: Sequence[Acks]) -> None:
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


def _windows(accepted: Sequence[tuple[Message, Acks]]) -> Iterator[list[tuple[Message, Acks]]]:
    """Cut the messages into windows that one call may carry; a message that is too large stands alone."""
    most = (limits.MAX_IDS, limits.MAX_RANGES, limits.MAX_COUNTS, limits.MAX_FAILURES)
    window: list[tuple[Message, Acks]] = []
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


def _refuse(outcome: Outcome, message: Message, error: FaninError) -> None:
    logger.warning("message refused", extra={"message_id": message["messageId"], "code": error.code})
    outcome.refused.append(message)


def _failures(messages: Iterable[Message]) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": message["messageId"]} for message in messages]}
