"""Telling the ledger what a consumer has done, in bulk: through the API, or through the ack queue."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from fanin.app.bisect import bisect
from fanin.client.ledger import LedgerCalls
from fanin.client.paging import pages
from fanin.client.queues import REQUEST_BYTES, queue_errors
from fanin.domain.acks import Acks, Failure
from fanin.domain.limits import MAX_FAILURES, MAX_REASON
from fanin.wire.ledger import encode_acks

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

logger = logging.getLogger("fanin")

_ENVELOPE: Final = 64  # bytes: the braces and names around the lists of a message


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one item.

    Attributes:
        item: its id.
        failure: why it failed for good; None if it was done.
    """

    item: str
    failure: str | None = None


Deliver: TypeAlias = Callable[[Sequence[Outcome]], None]
"""Tells the ledger outcomes, all or nothing as far as ids go; raises an error of fanin's if it could not."""


def split(outcomes: Iterable[Outcome]) -> tuple[list[str], list[Failure]]:
    """Part what is done from what failed."""
    done: list[str] = []
    failed: list[Failure] = []
    for outcome in outcomes:
        if outcome.failure is None:
            done.append(outcome.item)
        else:
            failed.append(Failure(outcome.item, outcome.failure[:MAX_REASON]))
    return done, failed


class DirectAcks:
    """Tells the ledger itself, so that a return means: marked."""

    def __init__(self, calls: LedgerCalls) -> None:
        self._calls = calls

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        done, failed = split(outcomes)
        if done:
            self._calls.ack(done)
        if failed:
            self._calls.fail(failed)


class QueuedAcks:
    """Leaves outcomes in the ack queue, where one function clears each word once for a whole window.

    A return means: the queue has them. It is cheaper than a request for each few items and keeps the
    ledger out of the consumer's path; an id that the ledger refuses shows only in the ack queue's DLQ.

    Args:
        sqs: client.
        queue_url: the ack queue, the stack's output ``AckQueueUrl``.
        message_bytes: bytes of one message.
    """

    def __init__(self, sqs: SQSClient, queue_url: str, *, message_bytes: int = REQUEST_BYTES) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._message_bytes = message_bytes

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        for body in self._bodies(outcomes):
            with queue_errors(self._queue_url):
                self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=body)

    def _bodies(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        room = self._message_bytes - _ENVELOPE
        for page in pages(outcomes, most=MAX_FAILURES, size_of=_wire_bytes, most_bytes=room):
            done, failed = split(page)
            acks = Acks(items=done, failures=failed)
            yield json.dumps(encode_acks(acks), separators=(",", ":"), ensure_ascii=False)


def _wire_bytes(outcome: Outcome) -> int:
    if outcome.failure is None:
        return len(outcome.item) + 3
    return len(json.dumps({"item": outcome.item, "reason": outcome.failure}, ensure_ascii=False).encode())


def undelivered(deliver: Deliver, outcomes: Sequence[Outcome]) -> set[str]:
    """Tell the ledger outcomes; a refused id spoils only itself.

    Where the call is refused for an id in it, the outcomes are halved until that id stands alone. On any
    other error none of them is known to be marked, so all must come again.

    Returns:
        Items that the ledger was not told; their messages must be delivered again.
    """
    untold: set[str] = set()
    for failed in bisect(outcomes, deliver):
        items = [outcome.item for outcome in failed.items]
        if failed.refused:
            logger.warning("item %s was refused: %s", items[0], failed.error)
        else:
            logger.warning("%d items could not be acknowledged and come again: %s", len(items), failed.error)
        untold.update(items)
    return untold
