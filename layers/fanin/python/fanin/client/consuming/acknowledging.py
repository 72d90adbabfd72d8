"""Acknowledging what a consumer has done, in bulk: through the ledger's API, or through the ack queue."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from fanin.app.bisect import REFUSALS, bisect
from fanin.client.ledger import LedgerCalls
from fanin.client.marking import FAILURES_BYTES, ITEMS_BYTES, failure_bytes, item_bytes
from fanin.client.paging import chunks
from fanin.client.sqs_errors import queue_errors
from fanin.client.sqs_messages import REQUEST_BYTES
from fanin.domain.acks import Acks, Failure, Result, join
from fanin.domain.batch import Mode
from fanin.domain.failures import KeptMessage
from fanin.domain.ids import parse_item
from fanin.domain.limits import MAX_FAILURES, MAX_IDS, MAX_REASON
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    FaninError,
    OutcomeUnknown,
    PartlyMarked,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
)
from fanin.wire.compact_json import compact
from fanin.wire.items import FAILURE, QUEUED_ACKS, RESULT

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

logger = logging.getLogger("fanin")

_ENVELOPE: Final = 96  # bytes: the braces and names around the lists of a message
_FAILURES: Final = 100  # of one request, which has room for their reasons, however long these are


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """What became of one item.

    Attributes:
        item: its id.
        failure: why it failed for good; None if it was done.
        message: its message, to be kept if it failed.
        attempts: how often the message was received; 0 if that is not known.
        source: URL or ARN of the queue that it came from; empty if that is not known.
        totals: what it brings to the totals of its batch.
    """

    item: str
    failure: str | None = None
    message: KeptMessage | None = field(default=None, repr=False)
    attempts: int = 0
    source: str = ""
    totals: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, failure: Failure) -> ItemOutcome:
        """The outcome of an item that failed."""
        return cls(
            failure.item, failure.reason, failure.message, failure.attempts, failure.source, failure.totals
        )

    @property
    def failed(self) -> Failure:
        """The failure as the ledger takes it; its reason is cut to the ledger's limit."""
        reason = (self.failure or "")[:MAX_REASON]
        return Failure(self.item, reason, self.message, self.attempts, self.source, self.totals)


Acknowledger: TypeAlias = Callable[[Sequence[ItemOutcome]], None]
"""Tells the ledger what became of items.

It raises an error of fanin if it could not. An error that blames an id (``fanin.app.bisect.REFUSALS``) is
repeated for as long as the id is among the items. If others of them are marked by then, it must be the cause
of a ``PartlyMarked``, whose rest is then repeated: an estimated batch would count the others again.
"""


def acks_of(outcomes: Iterable[ItemOutcome]) -> Acks:
    """The request that tells the ledger of these items; reasons are cut to the ledger's limit."""
    items: list[str] = []
    failures: list[Failure] = []
    results: list[Result] = []
    for outcome in outcomes:
        if outcome.failure is not None:
            failures.append(outcome.failed)
        elif outcome.totals:
            results.append(Result(outcome.item, outcome.totals))
        else:
            items.append(outcome.item)
    return Acks(items, failures=failures, results=results)


class LedgerAcknowledger:
    """Acknowledges by calling the ledger: when a call returns, the items are marked.

    A ledger that is down or overloaded for long would use up the tries of the messages, whose work is done,
    and the dead-letter queue would fail their items. So what the ledger cannot mark now goes to the ack
    queue, where it is known: then the ledger marks it when it can.

    An estimated batch counts a repeat again. So if the answer to a call is lost, its items of estimated
    batches are not marked again: they count as acknowledged, and the log names their batches. While the
    ledger does not say which batches are estimated, all items of the call go to the ack queue: if their
    messages came again instead, they would be counted again too, and the work would be done again.

    Args:
        ledger: the ledger's calls, such as a ``Tracker``.
        spare: takes what the ledger cannot mark now; None raises the ledger's error.
    """

    def __init__(self, ledger: LedgerCalls, spare: Acknowledger | None = None) -> None:
        self._ledger = ledger
        self._spare = spare

    def __call__(self, outcomes: Sequence[ItemOutcome]) -> None:
        left: list[Acks] = []
        busy: Throttled | ServiceUnavailable | None = None
        requests = _requests(outcomes)
        first = True
        for acks in requests:
            try:
                self._mark(acks)
            except (Throttled, ServiceUnavailable) as error:
                left.append(error.rest if isinstance(error, PartlyMarked) else acks)
                busy = error
            except FaninError as error:
                if first:
                    raise
                raise _left(error, join([*left, acks, *requests])) from error
            first = False
        if busy is None:
            return
        rest = join(left)
        if self._spare is None:
            raise _left(busy, rest) from busy
        spared = [
            *map(ItemOutcome, rest.items),
            *(ItemOutcome(result.item, totals=result.totals) for result in rest.results),
            *map(ItemOutcome.of, rest.failures),
        ]
        logger.warning("%d items go to the ack queue, since the ledger is busy: %s", len(spared), busy)
        try:
            self._spare(spared)
        except PartlyMarked:
            raise
        except FaninError as error:
            raise _left(error, rest) from error

    def _mark(self, acks: Acks) -> None:
        """Make a call; after a lost answer, repeat it without the items of estimated batches.

        Raises:
            PartlyMarked: the answer was lost, and so was the one that says which batches are estimated, or
                that of the repeat. Its rest is all but the items of batches that are known to be estimated.
        """
        try:
            self._call(acks)
        except OutcomeUnknown as lost:
            estimated, silent = self._estimated(acks.batches)
            if estimated:
                logger.error(  # noqa: TRY400  the error that is raised does not matter, the batches do
                    "items of the estimated batches %s may not have been counted, and are not counted again;"
                    " compare the status of the batches with the work: %s",
                    sorted(estimated),
                    lost,
                )
            rest = _without(acks, estimated)
            if silent is not None:
                raise _left(lost, rest) from silent
            try:
                self._call(rest)
            except FaninError as error:
                raise _left(error, rest) from error

    def _call(self, acks: Acks) -> None:
        if acks.items or acks.results:
            self._ledger.ack([*acks.items, *acks.results])
        if acks.failures:
            self._ledger.fail(acks.failures)

    def _estimated(self, named: Iterable[int]) -> tuple[set[int], FaninError | None]:
        """Which batches are estimated, and why the ledger did not say it of all.

        It is not asked for the next batch once it did not answer: that would take as long again.
        """
        estimated: set[int] = set()
        for batch_id in sorted(named):
            try:
                if self._ledger.status(batch_id).batch.mode is Mode.ESTIMATED:
                    estimated.add(batch_id)
            except (BatchNotFound, BatchGone):
                continue  # it counts nothing any more
            except FaninError as error:
                return estimated, error
        return estimated, None


def _requests(outcomes: Iterable[ItemOutcome]) -> Iterator[Acks]:
    """What the ledger is asked for, a request each: items that are done, then those that failed."""
    asked = acks_of(outcomes)
    yield from (Acks(items=items) for items in chunks(asked.items, max_items=MAX_IDS))
    results = chunks(asked.results, max_items=MAX_IDS, size_of=item_bytes, max_bytes=ITEMS_BYTES)
    yield from (Acks(results=page) for page in results)
    requests = chunks(asked.failures, max_items=_FAILURES, size_of=failure_bytes, max_bytes=FAILURES_BYTES)
    yield from (Acks(failures=failures) for failures in requests)


def _without(acks: Acks, batches: Container[int]) -> Acks:
    return Acks(
        items=[item for item in acks.items if _batch_of(item) not in batches],
        failures=[failure for failure in acks.failures if _batch_of(failure.item) not in batches],
        results=[result for result in acks.results if _batch_of(result.item) not in batches],
    )


def _batch_of(item: str) -> int:
    return parse_item(item)[0].batch_id


def _left(error: Exception, rest: Acks) -> PartlyMarked:
    return PartlyMarked(str(error), receipts=(), rest=rest, retry_after=1)


class QueueAcknowledger:
    """Acknowledges by sending messages to the ack queue: when a call returns, the queue has them.

    One function takes a whole window of these messages and writes each word once. So this is cheaper than a
    request for every few items, and the consumer does not depend on the ledger being up. What the
    ledger refuses, such as a total that the batch does not have, shows up in the ack queue's dead-letter
    queue only; the other items of the message are marked.

    A failed item whose message does not fit into one of these messages is not acknowledged: its message comes
    again until it reaches its queue's dead-letter queue, and is kept from there.

    Args:
        sqs: client.
        queue_url: the ack queue, the stack's output ``AckQueueUrl``.
        message_bytes: most bytes of one message.
    """

    def __init__(self, sqs: SQSClient, queue_url: str, *, message_bytes: int = REQUEST_BYTES) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._message_bytes = message_bytes

    def __call__(self, outcomes: Sequence[ItemOutcome]) -> None:
        room = self._message_bytes - _ENVELOPE
        large = [one for one in outcomes if one.message is not None and _wire_bytes(one) > room]
        messages = self._messages([one for one in outcomes if one not in large] if large else outcomes)
        sent = False
        for acks in messages:
            body = compact(QUEUED_ACKS.encode(acks))
            try:
                with queue_errors(self._queue_url):
                    self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=body)
            except FaninError as error:
                if not sent:
                    raise
                left = Acks(failures=[one.failed for one in large])
                raise _left(error, join([acks, *messages, left])) from error
            sent = True
        if large:
            raise _left(_too_large(large, room), Acks(failures=[one.failed for one in large]))

    def _messages(self, outcomes: Sequence[ItemOutcome]) -> Iterator[Acks]:
        room = self._message_bytes - _ENVELOPE
        for some in _agreeing(outcomes):
            for chunk in chunks(some, max_items=MAX_FAILURES, size_of=_wire_bytes, max_bytes=room):
                yield acks_of(chunk)


def _agreeing(outcomes: Sequence[ItemOutcome]) -> Iterator[Sequence[ItemOutcome]]:
    """Divide outcomes so that no part names an item twice with different totals.

    Two deliveries of an item may be handled in one window. The ledger refuses a call that names both values,
    and with it a message, in which other items are. In messages of their own, the first decides.
    """
    while outcomes:
        totals: dict[str, Mapping[str, int]] = {}
        later = [one for one in outcomes if totals.setdefault(one.item, one.totals) != one.totals]
        yield [one for one in outcomes if one.totals == totals[one.item]] if later else outcomes
        outcomes = later


def _wire_bytes(outcome: ItemOutcome) -> int:
    if outcome.failure is None and not outcome.totals:
        return len(outcome.item) + 3
    if outcome.failure is None:
        return len(compact(RESULT.encode(Result(outcome.item, outcome.totals)))) + 1
    return len(compact(FAILURE.encode(outcome.failed)).encode()) + 1


def _too_large(outcomes: Sequence[ItemOutcome], room: int) -> RequestTooLarge:
    """Why failures are not acknowledged through the ack queue; also logs it."""
    logger.warning(
        "%d failed items, the first %s, have messages over the %d bytes that the ack queue takes:"
        " they are not acknowledged, come again, and are kept when they reach their dead-letter queue",
        len(outcomes),
        outcomes[0].item,
        room,
    )
    return RequestTooLarge(
        f"the message of item {outcomes[0].item} is over the {room} bytes that the ack queue takes; fail it"
        ' over the API (via="api"), keep its reason alone (keep="reason"), or let it reach its dead-letter'
        " queue"
    )


def unacknowledged(acknowledge: Acknowledger, outcomes: Sequence[ItemOutcome]) -> set[str]:
    """Acknowledge items, and report those that could not be; a refused id does not affect the others.

    After an error that blames no id, all items are reported, except those that are known to be marked.

    Returns:
        Ids of items whose messages must be delivered again.
    """
    unmarked: set[str] = set()
    for failed in bisect(outcomes, acknowledge):
        items = [outcome.item for outcome in failed.items]
        if isinstance(failed.error, PartlyMarked):
            rest = failed.error.rest
            left = {*rest.items, *(one.item for one in rest.failures), *(one.item for one in rest.results)}
            others = [outcome for outcome in failed.items if outcome.item in left]
            if isinstance(failed.error.__cause__, REFUSALS) and len(others) < len(failed.items):
                unmarked |= unacknowledged(acknowledge, others)
                continue
            items = [item for item in items if item in left]
        if failed.refused:
            logger.warning("item %r was refused, its message comes again: %s", items[0], failed.error)
        else:
            logger.warning("%d items could not be acknowledged and come again: %s", len(items), failed.error)
        unmarked.update(items)
    return unmarked
