"""The ack queue and dead-letter queues: many messages become one call of the ledger.

A poison message does not hold up the others: a call that is refused is halved until the bad message stands
alone, and that message until the bad item does. What overload has left comes again after a pause that grows;
the queue allows for a day of them.

An estimated batch counts a repeat again. So of a message of which something was counted, only what is left
comes again, as a new message, and what may have been counted waits for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from fanin import names
from fanin.app.api import Ledger
from fanin.app.bisect import REFUSALS, Failed, bisect
from fanin.app.ports.parts import RetryRow
from fanin.domain import limits
from fanin.domain.acks import Acks, Receipt, each, join
from fanin.domain.failures import Keep
from fanin.entry.http.validation import parse
from fanin.entry.invocation import INVOCATION
from fanin.entry.kept_messages import dead_failure
from fanin.entry.observe import count_failures, count_receipts
from fanin.entry.partial_batch import Message
from fanin.entry.unhandled import Park, Postpone, PutBack, Unhandled
from fanin.errors import FaninError, InvalidRequest, OutcomeUnknown, PartlyMarked, Throttled
from fanin.wire.compact_json import compact
from fanin.wire.items import QUEUED_ACKS
from fanin.wire.messages import pack

SourceOf: TypeAlias = Callable[[str], str | None]
"""Name of the queue whose dead letters a queue takes, by ARN; None if it is not known."""

LastAttempts: TypeAlias = Callable[[Sequence[str]], Mapping[str, RetryRow]]
"""The last attempts at items that failed, by item id, as far as they were noted."""
SentQueues: TypeAlias = Callable[[Sequence[str]], Mapping[str, str]]
"""The queues to which items were sent, by item id, as far as notes tell."""

Accepted: TypeAlias = tuple[Message, Acks]
"""A message, and what it asks for."""


def acknowledge(
    event: Message, ledger: Ledger, park: Park, postpone: Postpone, put_back: PutBack
) -> dict[str, Any]:
    """Mark the items that messages of the ack queue name.

    Args:
        event: what Lambda hands over; each body is that of ``POST /v1/acks``, with or without failures.
        ledger: marks the items.
        park: sends poison messages to the dead-letter queue, which they would reach after all tries anyway.
        postpone: changes when messages come again.
        put_back: sends what is left of a message of which an estimated batch has counted something.

    Returns:
        The partial batch response: messages with unmarked items that were not put back, and those that could
        not be parked now.
    """
    unhandled = Unhandled()
    accepted: list[Accepted] = []
    for message in event["Records"]:
        try:
            accepted.append((message, parse(QUEUED_ACKS, message["body"])))
        except InvalidRequest as error:
            unhandled.refuse(message, error)
    _mark(ledger, accepted, unhandled)
    return unhandled.response(park, postpone, put_back)


def fail_dead_letters(
    event: Message,
    ledger: Ledger,
    park: Park,
    postpone: Postpone,
    *,
    kept_from: str | None = None,
    keep: Callable[[str], Keep] = lambda _: Keep.MESSAGE,
    source_of: SourceOf = lambda _: None,
    last_attempts: LastAttempts = lambda _: {},
    sent_queues: SentQueues = lambda _: {},
) -> dict[str, Any]:
    """Fail the items whose messages ended in a dead-letter queue, so that their batches can complete.

    The messages are kept with their batches, where people find them. The first mark of an item decides, so
    an item that was done stays done. A message is parked if it has no item id, or one that is refused, or if
    its batch does not exist any more.

    Args:
        event: what Lambda hands over, from one or several dead-letter queues.
        ledger: fails the items.
        park: keeps the messages that cannot be handled.
        postpone: changes when messages come again.
        kept_from: ARN of a dead-letter queue whose messages are parked after their items have failed, because
            a buffer's payload is nowhere else. They are not kept with their batch, too.
        keep: tells by the ARN of a dead-letter queue what is kept of its messages. While it cannot, they
            come again.
        source_of: gives the ARN of the queue that a dead letter comes from, where the message does not say.
        last_attempts: gives the last attempts at items that failed.
        sent_queues: tells to which queues items were sent, where nothing else names their queue.

    Returns:
        The partial batch response: messages that could be neither handled nor parked now.
    """
    unhandled = Unhandled()
    accepted: list[Accepted] = []
    items = [(message, _item(message)) for message in event["Records"]]
    attempts = last_attempts([item for _, item in items if item])
    sources = {
        item: message["attributes"].get("DeadLetterQueueSourceArn") or source_of(message["eventSourceARN"])
        for message, item in items
        if item
    }
    unnamed = [item for item, source in sources.items() if not source and item not in attempts]
    sent_to = sent_queues(unnamed) if unnamed else {}
    for message, item in items:
        if not item:
            unhandled.refuse(message, InvalidRequest(f"no message attribute {names.ITEM_ATTRIBUTE}"))
            continue
        queue = message["eventSourceARN"]
        try:
            kept = queue != kept_from and keep(queue) is Keep.MESSAGE
        except FaninError as error:
            unhandled.postpone(message, error)
            continue
        source = sources[item] or sent_to.get(item, "")
        failure = dead_failure(message, item, source, attempts.get(item), kept=kept)
        accepted.append((message, Acks(failures=[failure])))
    _mark(ledger, accepted, unhandled)
    if kept_from is not None:
        unhandled.keep([message for message, _ in accepted if message["eventSourceARN"] == kept_from])
    return unhandled.response(park, postpone)


def _item(message: Message) -> str:
    attributes = message.get("messageAttributes", {})
    return attributes.get(names.ITEM_ATTRIBUTE, {}).get("stringValue") or ""


@dataclass
class _Outcome:
    """What one kind of call did for the messages of a window; messages are named by their ids.

    Attributes:
        receipts: of what is marked.
        left: what is not, and may be asked for again.
        unknown: what may have been counted, and must not be asked for again.
        errors: why something of a message is not marked.
    """

    receipts: list[Receipt] = field(default_factory=list)
    left: dict[str, Acks] = field(default_factory=dict)
    unknown: dict[str, Acks] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)

    def leave(self, window: Sequence[Accepted], error: Exception, rest: Acks | None = None) -> None:
        """Note what is left of the messages; all of them if the call does not say what is."""
        self._note(self.left, window, error, rest)

    def doubt(self, window: Sequence[Accepted], error: OutcomeUnknown) -> None:
        """Note what the messages may have counted."""
        self._note(self.unknown, window, error, error.unknown)

    def _note(
        self, notes: dict[str, Acks], window: Sequence[Accepted], error: Exception, rest: Acks | None
    ) -> None:
        for message, acks in window:
            part = acks if rest is None else _common(acks, rest)
            if not part.empty:
                name = message["messageId"]
                notes[name] = join([notes[name], part]) if name in notes else part
                if name not in self.errors or isinstance(self.errors[name], REFUSALS):
                    self.errors[name] = (
                        error  # a part that is refused does not hide why the rest is not marked
                    )


def _mark(ledger: Ledger, accepted: Sequence[Accepted], unhandled: Unhandled) -> None:
    """Mark what the messages say, with as few calls of the ledger as its limits allow.

    Of a message with failures, these go first; the rest of it waits until they are marked.
    """
    for window in _windows(accepted):
        failing = [(message, Acks(failures=acks.failures)) for message, acks in window if acks.failures]
        failed = _make(failing, lambda acks: ledger.fail(acks.failures))
        count_failures(failed.receipts)
        acking = [(message, replace(acks, failures=())) for message, acks in window]
        ready = [one for one in acking if not one[1].empty and one[0]["messageId"] not in failed.errors]
        acked = _make(
            ready,
            lambda acks: ledger.ack(acks.items, ranges=acks.ranges, counts=acks.counts, results=acks.results),
        )
        count_receipts(acked.receipts)
        counted = {receipt.batch_id for receipt in (*failed.receipts, *acked.receipts) if receipt.ranged}
        for (message, acks), (_, marks) in zip(window, acking, strict=True):
            name = message["messageId"]
            if name in failed.errors:
                left = join([failed.left.get(name, Acks()), marks])
                _settle((message, acks), failed, left, counted, unhandled)
            elif name in acked.errors:
                _settle((message, acks), acked, acked.left.get(name, Acks()), counted, unhandled)


def _make(window: Sequence[Accepted], call: Callable[[Acks], Sequence[Receipt]]) -> _Outcome:
    """Make one call for all messages, or as many as it takes to single out what is at fault.

    A call that is refused has counted nothing. So no message is counted twice, however often a window is
    halved. A message that is refused is halved in turn: of what it names, only that is refused which is at
    fault. While some of it cannot be marked now, the message is not refused, and comes again.
    """
    outcome = _Outcome()

    def apply(part: Sequence[Accepted]) -> None:
        if INVOCATION.seconds_left() <= 0:
            raise Throttled("the time of this invocation is up")
        try:
            outcome.receipts += call(join(acks for _, acks in part))
        except PartlyMarked as partly:
            outcome.receipts += partly.receipts
            outcome.leave(part, partly, partly.rest)
        except OutcomeUnknown as lost:
            outcome.receipts += lost.receipts
            outcome.leave(part, lost, lost.rest or Acks())
            outcome.doubt(part, lost)

    for failed in bisect(window, apply, on_defect=True):
        parts = _parts(failed)
        for part in bisect(parts, apply, on_defect=True) if parts else [failed]:
            outcome.leave(part.items, part.error)
    return outcome


def _parts(failed: Failed[Accepted]) -> list[Accepted]:
    """What a refused message names, one by one; nothing if the message is not to be halved.

    A batch that does not exist refuses all that is of it, so halving what names no other is of no use.
    """
    if not failed.refused:
        return []
    ((message, acks),) = failed.items
    parts = [(message, one) for one in each(acks)]
    several = len(parts) > 1 and (isinstance(failed.error, InvalidRequest) or len(acks.batches) > 1)
    return parts if several else []


def _settle(
    accepted: Accepted, outcome: _Outcome, left: Acks, counted: Container[int], unhandled: Unhandled
) -> None:
    """Hand over a message of which something is not marked.

    Args:
        accepted: the message.
        outcome: of the call that did not mark all.
        left: what is left of the message.
        counted: batches that may have counted something of the window; their ranges may be exact.
        unhandled: takes the message, or parts of it.
    """
    message, acks = accepted
    name = message["messageId"]
    error = outcome.errors[name]
    if isinstance(error, OutcomeUnknown) and name in outcome.unknown:
        unhandled.refuse(_with(accepted, outcome.unknown[name]), error)
        if not left.empty:
            unhandled.put_back(_with(accepted, left), error)
        return
    if isinstance(error, REFUSALS):
        unhandled.refuse(_with(accepted, left), error)
        return
    rest = _with(accepted, left) if any(batch_id in counted for batch_id in acks.batches) else message
    if rest is message:
        unhandled.postpone(message, error)
    else:
        unhandled.put_back(rest, error)


def _with(accepted: Accepted, part: Acks) -> Message:
    """The message with a part of its content; the very message if that is all of it."""
    message, acks = accepted
    if _sizes(part) == _sizes(acks):
        return message
    return {**message, "body": compact(QUEUED_ACKS.encode(part))}


def _common(acks: Acks, rest: Acks) -> Acks:
    """What a message asks for of the rest of a call."""
    items = {*rest.items, *(result.item for result in rest.results)}
    failures = {failure.item for failure in rest.failures}
    ranges, counts = {(r.group, r.start) for r in rest.ranges}, {c.batch_id for c in rest.counts}
    return Acks(
        items=[item for item in acks.items if item in items] or (),
        ranges=[r for r in acks.ranges if (r.group, r.start) in ranges] or (),
        counts=[c for c in acks.counts if c.batch_id in counts] or (),
        failures=[failure for failure in acks.failures if failure.item in failures] or (),
        results=[result for result in acks.results if result.item in items] or (),
    )


def _sizes(acks: Acks) -> tuple[int, ...]:
    return len(acks.items) + len(acks.results), len(acks.ranges), len(acks.counts), len(acks.failures)


def _windows(accepted: Sequence[Accepted]) -> Iterator[list[Accepted]]:
    """Cut the messages into windows that fit one call; a message that alone exceeds a limit stands alone."""
    counts = (limits.MAX_IDS, limits.MAX_RANGES, limits.MAX_COUNTS, limits.MAX_FAILURES)
    most = (*counts, limits.MAX_FAILED_MESSAGES)
    window: list[Accepted] = []
    load: tuple[int, ...] = (0,) * len(most)
    for message, acks in accepted:
        messages = (failure.message for failure in acks.failures)
        sizes = (*_sizes(acks), sum(len(pack(one)) for one in messages if one is not None))
        total = tuple(a + b for a, b in zip(load, sizes, strict=True))
        if window and any(a > b for a, b in zip(total, most, strict=True)):
            yield window
            window, total = [], sizes
        window.append((message, acks))
        load = total
    if window:
        yield window
