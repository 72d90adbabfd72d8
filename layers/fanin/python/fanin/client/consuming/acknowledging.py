"""Acknowledging what a consumer has done, in bulk: through the ledger's API, or through the ack queue."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from fanin.app.bisect import bisect
from fanin.client.ledger import LedgerCalls
from fanin.client.paging import chunks
from fanin.client.sqs_errors import queue_errors
from fanin.client.sqs_messages import REQUEST_BYTES
from fanin.domain.acks import Acks, Failure
from fanin.domain.limits import MAX_FAILURES, MAX_IDS, MAX_REASON
from fanin.errors import PartlyMarked, ServiceUnavailable, Throttled
from fanin.wire.items import QUEUED_ACKS

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

logger = logging.getLogger("fanin")

_ENVELOPE: Final = 64  # bytes: the braces and names around the lists of a message


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """What became of one item.

    Attributes:
        item: its id.
        failure: why it failed for good; None if it was done.
    """

    item: str
    failure: str | None = None


Acknowledger: TypeAlias = Callable[[Sequence[ItemOutcome]], None]
"""Tells the ledger what became of items.

It raises an error of fanin if it could not. An error that blames an id (``fanin.app.bisect.REFUSALS``) is
repeated for as long as the id is among the items, and may be raised after others of them were marked.
"""


def split(outcomes: Iterable[ItemOutcome]) -> tuple[list[str], list[Failure]]:
    """Separate the items that are done from those that failed; reasons are cut to the ledger's limit."""
    done: list[str] = []
    failed: list[Failure] = []
    for outcome in outcomes:
        if outcome.failure is None:
            done.append(outcome.item)
        else:
            failed.append(Failure(outcome.item, outcome.failure[:MAX_REASON]))
    return done, failed


class LedgerAcknowledger:
    """Acknowledges by calling the ledger: when a call returns, the items are marked.

    A ledger that is overloaded for long would use up the tries of the messages, whose work is done, and the
    dead-letter queue would fail their items. So what the ledger cannot mark now goes to the ack queue, where
    it is known: then the ledger marks it when it can.

    Args:
        ledger: the ledger's calls, such as a ``Tracker``.
        spare: takes what the ledger cannot mark now; None raises the ledger's error.
    """

    def __init__(self, ledger: LedgerCalls, spare: Acknowledger | None = None) -> None:
        self._ledger = ledger
        self._spare = spare

    def __call__(self, outcomes: Sequence[ItemOutcome]) -> None:
        done, failed = split(outcomes)
        left: list[ItemOutcome] = []
        busy: Throttled | ServiceUnavailable | None = None
        for items in chunks(done, max_items=MAX_IDS):
            try:
                self._ledger.ack(items)
            except (Throttled, ServiceUnavailable) as error:
                rest = error.rest.items if isinstance(error, PartlyMarked) else items
                left += map(ItemOutcome, rest)
                busy = error
        if failed:
            try:
                self._ledger.fail(failed)
            except (Throttled, ServiceUnavailable) as error:
                left += [ItemOutcome(failure.item, failure.reason) for failure in failed]
                busy = error
        if busy is None:
            return
        if self._spare is None:
            raise _left(busy, left) from busy
        logger.warning("%d items go to the ack queue, since the ledger is busy: %s", len(left), busy)
        self._spare(left)


def _left(busy: Exception, left: Iterable[ItemOutcome]) -> PartlyMarked:
    done, failed = split(left)
    return PartlyMarked(str(busy), receipts=(), rest=Acks(items=done, failures=failed), retry_after=1)


class QueueAcknowledger:
    """Acknowledges by sending messages to the ack queue: when a call returns, the queue has them.

    One function takes a whole window of these messages and writes each word once. So this is cheaper than a
    request for every few items, and the consumer does not depend on the ledger being up. An id that the
    ledger refuses shows up in the ack queue's dead-letter queue only.

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
        for body in self._bodies(outcomes):
            with queue_errors(self._queue_url):
                self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=body)

    def _bodies(self, outcomes: Sequence[ItemOutcome]) -> Iterator[str]:
        room = self._message_bytes - _ENVELOPE
        for chunk in chunks(outcomes, max_items=MAX_FAILURES, size_of=_wire_bytes, max_bytes=room):
            done, failed = split(chunk)
            acks = Acks(items=done, failures=failed)
            yield json.dumps(QUEUED_ACKS.encode(acks), separators=(",", ":"), ensure_ascii=False)


def _wire_bytes(outcome: ItemOutcome) -> int:
    if outcome.failure is None:
        return len(outcome.item) + 3
    return len(json.dumps({"item": outcome.item, "reason": outcome.failure}, ensure_ascii=False).encode())


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
            left = {*rest.items, *(failure.item for failure in rest.failures)}
            items = [item for item in items if item in left]
        if failed.refused:
            logger.warning("item %r was refused, its message comes again: %s", items[0], failed.error)
        else:
            logger.warning("%d items could not be acknowledged and come again: %s", len(items), failed.error)
        unmarked.update(items)
    return unmarked
