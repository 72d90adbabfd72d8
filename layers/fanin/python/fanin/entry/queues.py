"""The ack queue and dead-letter queues: the marks of many messages go to the ledger together.

The ledger judges every mark by itself. Marks that it refuses are parked, those of one message and one kind of
error together. What overload has left comes again after a pause that grows; the queue allows so many receives
that this goes on for a day.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fanin import names
from fanin.app.api import Ledger
from fanin.app.ports.parts import RetryRow
from fanin.domain import limits
from fanin.domain.failures import Keep
from fanin.domain.marks import Failure, Mark, Marked, Receipt
from fanin.entry.invocation import INVOCATION
from fanin.entry.kept_messages import dead_failure
from fanin.entry.partial_batch import SqsRecord
from fanin.errors import FaninError, InvalidRequest, Throttled
from fanin.wire.json_text import compact, read_json
from fanin.wire.marks import MARKS, requests

SourceOf: TypeAlias = Callable[[str], str | None]
"""Name of the queue whose dead letters a queue takes, by ARN; None if it is not known."""

LastAttempts: TypeAlias = Callable[[Sequence[str]], Mapping[str, RetryRow]]
"""Finds the last attempts at items, by item id, as far as they were noted."""

SentQueues: TypeAlias = Callable[[Sequence[str]], Mapping[str, str]]
"""Finds the queues to which items were sent, by item id, as far as this was noted."""


@dataclass
class Handled:
    """What became of messages.

    Attributes:
        receipts: of the batches.
        poison: messages for a person to look at, each with its error.
        refused: marks for a person to look at: those of one message and one kind of error as one message,
            with the first error.
        again: messages of which nothing was marked, each with its error: they come again as they are.
        rests: copies of messages that were marked in part, with the marks that are left, each with its error.
    """

    receipts: list[Receipt] = field(default_factory=list)
    poison: list[tuple[SqsRecord, Exception]] = field(default_factory=list)
    refused: list[tuple[SqsRecord, Exception]] = field(default_factory=list)
    again: list[tuple[SqsRecord, Exception]] = field(default_factory=list)
    rests: list[tuple[SqsRecord, Exception]] = field(default_factory=list)


def acknowledge(messages: Sequence[SqsRecord], ledger: Ledger) -> Handled:
    """Mark what messages of the ack queue name.

    Args:
        messages: records of an event of SQS; each body is that of ``POST /v1/acks``.
        ledger: marks the items.
    """
    handled = Handled()
    marks: list[Mark] = []
    origins: list[tuple[int, Any]] = []  # of each mark: the number of its message, and its JSON
    sizes: dict[int, int] = {}
    for number, message in enumerate(messages):
        try:
            entries = _entries(message["body"])
            marks += MARKS.decode({"marks": entries})
            origins += [(number, entry) for entry in entries]
            sizes[number] = len(entries)
        except InvalidRequest as malformed:
            handled.poison.append((_because(message, malformed), malformed))

    def part(number: int, places: Iterable[int]) -> SqsRecord:
        """A message with some of its marks."""
        entries = [origins[place][1] for place in sorted(places)]
        return {**messages[number], "body": compact({"marks": entries})}

    unsettled: dict[tuple[int, type | None], dict[int, Exception]] = {}  # by message, and why it is refused
    for place, error, for_good in _verdicts(marks, ledger, handled.receipts):
        why = type(error) if for_good else None
        unsettled.setdefault((origins[place][0], why), {})[place] = error
    for (number, why), errors in unsettled.items():
        error = next(iter(errors.values()))
        if why is not None:
            handled.refused.append((_because(part(number, errors), error), error))
        elif len(errors) == sizes[number]:
            handled.again.append((messages[number], error))
        else:
            handled.rests.append((part(number, errors), error))
    return handled


def _entries(body: str) -> list[Any]:
    """The marks of a message, as they are in its JSON.

    Raises:
        InvalidRequest: it is not a message of the ack queue.
    """
    said = read_json(body, any_text=True)
    if not isinstance(said, dict) or said.keys() != {"marks"} or not isinstance(said["marks"], list):
        raise InvalidRequest('a message of the ack queue must be an object with one list: {"marks": [...]}')
    return said["marks"]


def _because(message: SqsRecord, error: Exception) -> SqsRecord:
    """The message with an attribute that says why it is set aside, if it has room for one."""
    attributes = message.get("messageAttributes", {})
    if len(attributes) > limits.MAX_MESSAGE_ATTRIBUTES:
        return message
    said = limits.cleaned(f"{getattr(error, 'code', type(error).__name__)}: {error}"[: limits.MAX_REASON])
    reason = {"stringValue": said, "dataType": "String"}
    return {**message, "messageAttributes": {**attributes, names.REASON_ATTRIBUTE: reason}}


def _in_time(marks: Sequence[Mark], ledger: Ledger) -> Marked:
    if INVOCATION.seconds_left() <= 0:
        raise Throttled("the time of this invocation is up")
    return ledger.mark(marks)


def _verdicts(
    marks: Sequence[Mark], ledger: Ledger, receipts: list[Receipt]
) -> Iterator[tuple[int, Exception, bool]]:
    """Mark with as few calls of the ledger as its limits allow; yields what is not settled.

    If a call meets a defect, only the marks of that call come again.

    Yields:
        The place of a mark, why it is not settled, and whether it must not be repeated.
    """
    start = 0
    for some in requests(marks, limits.MAX_FAILED_MESSAGES):
        try:
            marked = _in_time(some, ledger)
        except Exception as error:  # noqa: BLE001  the other calls must be made all the same
            yield from ((start + place, error, False) for place in range(len(some)))
        else:
            receipts += marked.receipts
            for_good = (*marked.refused.items(), *marked.unknown.items())
            yield from ((start + at, error, True) for at, error in for_good)
            yield from ((start + at, error, False) for at, error in marked.left.items())
        start += len(some)


def fail_dead_letters(
    messages: Sequence[SqsRecord],
    ledger: Ledger,
    *,
    kept_from: str | None = None,
    keep: Callable[[str], Keep] = lambda _: Keep.MESSAGE,
    source_of: SourceOf = lambda _: None,
    last_attempts: LastAttempts = lambda _: {},
    sent_queues: SentQueues = lambda _: {},
) -> Handled:
    """Fail the items whose messages ended in a dead-letter queue, so that their batches can complete.

    The messages are kept with their batches, where people find them. The first mark of an item decides, so
    an item that was done stays done. A message is parked if it has no item id, or one that is refused, or if
    its batch does not exist any more.

    Args:
        messages: records of an event of SQS, from one or several dead-letter queues.
        ledger: fails the items.
        kept_from: ARN of a dead-letter queue whose messages are not kept with their batch, because they are
            kept elsewhere.
        keep: tells by the ARN of a dead-letter queue what is kept of its messages. While it raises an error,
            they come again.
        source_of: gives the ARN of the queue that a dead letter comes from, where the message does not say.
        last_attempts: gives the last attempts at items that failed.
        sent_queues: tells to which queues items were sent, where nothing else names their queue.
    """
    handled = Handled()
    failing: list[SqsRecord] = []
    failures: list[Failure] = []
    items = [(message, _item(message)) for message in messages]
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
            handled.poison.append((message, InvalidRequest(f"no message attribute {names.ITEM_ATTRIBUTE}")))
            continue
        queue = message["eventSourceARN"]
        try:
            kept = queue != kept_from and keep(queue) is Keep.MESSAGE
        except FaninError as unknown:
            handled.again.append((message, unknown))
            continue
        source = sources[item] or sent_to.get(item, "")
        failing.append(message)
        failures.append(dead_failure(message, item, source, attempts.get(item), kept=kept))
    for place, error, refused in _verdicts(failures, ledger, handled.receipts):
        (handled.poison if refused else handled.again).append((failing[place], error))
    return handled


def _item(message: SqsRecord) -> str:
    attributes = message.get("messageAttributes", {})
    return attributes.get(names.ITEM_ATTRIBUTE, {}).get("stringValue") or ""
