"""Acknowledging what a consumer has done, in bulk: through the ledger's API, or through the ack queue."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from fanin.client.marking import MarkingCalls
from fanin.client.sqs import REQUEST_BYTES, SQSClient, queue_errors
from fanin.domain.marks import Mark, batch_of
from fanin.errors import FaninError, InvalidRequest, RequestTooLarge
from fanin.wire.json_text import compact
from fanin.wire.marks import MARKS, requests, size_of

logger = logging.getLogger("fanin")

_ENVELOPE: Final = 96  # bytes: the braces and the name around the marks of a message

Acknowledger: TypeAlias = Callable[[Sequence[Mark]], Mapping[int, FaninError]]
"""Tells the ledger what became of items, in the order in which it happened.

It returns why marks are not settled, by their places: the messages of these must be delivered again.
"""


class LedgerAcknowledger:
    """Acknowledges by calling the ledger: when a call returns, the items are marked.

    A ledger that is down or overloaded for long would use up the tries of the messages, whose work is done,
    and the dead-letter queue would fail their items. So what the ledger cannot mark now goes to the ack
    queue, where it is known: then the ledger marks it when it can.

    What an estimated batch may have counted is settled, since it would count a repeat again; the log names
    the batches.

    Args:
        calls: the ledger's calls, such as a ``Tracker``.
        spare: takes what the ledger cannot mark now; None leaves it.
    """

    def __init__(self, calls: MarkingCalls, spare: Acknowledger | None = None) -> None:
        self._calls = calls
        self._spare = spare

    def __call__(self, marks: Sequence[Mark]) -> Mapping[int, FaninError]:
        try:
            marked = self._calls.mark(marks)
        except FaninError as error:
            return dict.fromkeys(range(len(marks)), error)
        if marked.unknown:
            logger.error(
                "items of the estimated batches %s may not have been counted, and are not counted again;"
                " compare the status of the batches with the work: %s",
                sorted({str(batch_of(marks[place])) for place in marked.unknown}),
                next(iter(marked.unknown.values())),
            )
        left = marked.left
        if left and self._spare is not None:
            busy = next(iter(left.values()))
            logger.warning("%d items go to the ack queue, since the ledger is busy: %s", len(left), busy)
            places = sorted(left)
            spared = self._spare([marks[place] for place in places])
            left = {places[at]: error for at, error in spared.items()}
        return {**marked.refused, **left}


class QueueAcknowledger:
    """Acknowledges by sending messages to the ack queue: when a call returns, the queue has them.

    One function takes a whole window of these messages and writes each word once. So this is cheaper than a
    request for every few items, and the consumer does not depend on the ledger being up. What the
    ledger refuses, such as a total that the batch does not have, shows up in the ack queue's dead-letter
    queue only.

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
        self._room = message_bytes - _ENVELOPE

    def __call__(self, marks: Sequence[Mark]) -> Mapping[int, FaninError]:
        unsettled: dict[int, FaninError] = {}
        for place, mark in enumerate(marks):
            try:
                if size_of(mark) > self._room:
                    unsettled[place] = _too_large(mark, self._room)
            except InvalidRequest as error:
                unsettled[place] = error
        places = [place for place in range(len(marks)) if place not in unsettled]
        sent, silent = 0, None
        for some in requests((marks[place] for place in places), self._room):
            silent = silent or self._send(some)
            if silent is not None:
                unsettled |= dict.fromkeys(places[sent : sent + len(some)], silent)
            sent += len(some)
        return unsettled

    def _send(self, marks: Sequence[Mark]) -> FaninError | None:
        """Send a message; the error if the queue did not take it."""
        body = compact(MARKS.encode(marks))
        try:
            with queue_errors(self._queue_url):
                self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=body)
        except FaninError as error:
            return error
        return None


def _too_large(mark: Mark, room: int) -> RequestTooLarge:
    """Why a mark is not acknowledged through the ack queue; also logs it."""
    item = str(getattr(mark, "item", mark))[:96]
    logger.warning(
        "the mark of item %r is over the %d bytes that the ack queue takes: it is not acknowledged, comes"
        " again, and is kept when it reaches its dead-letter queue",
        item,
        room,
    )
    return RequestTooLarge(
        f"the mark of item {item!r} is over the {room} bytes that the ack queue takes; mark it over the API"
        ' (via="api"), keep of a failure its reason alone (keep="reason"), or let its message reach its'
        " dead-letter queue"
    )
