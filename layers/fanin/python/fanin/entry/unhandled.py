"""What becomes of messages that were not handled: poison is parked, and all others come again."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.entry.invocation import INVOCATION
from fanin.entry.observe import count, count_receipts, logger
from fanin.entry.partial_batch import ACKS, SqsRecord, partial_batch_response, pause
from fanin.entry.queues import Handled
from fanin.errors import FaninError, ServiceUnavailable, Throttled

ParkMessage: TypeAlias = Callable[[SqsRecord], None]
"""Sends a message that cannot be handled to a queue for people to look at; raises if that fails."""

Postpone: TypeAlias = Callable[[Sequence[tuple[SqsRecord, int]]], None]
"""Lets messages come again after so many seconds; if it raises, after the timeout of their queue."""

PutBack: TypeAlias = Callable[[SqsRecord, int], None]
"""Sends a copy of a message to its own queue, to be received after so many seconds."""


def respond(
    handled: Handled,
    park: ParkMessage,
    postpone: Postpone,
    put_back: PutBack = lambda *_: None,
    *,
    keep: Sequence[SqsRecord] = (),
) -> dict[str, Any]:
    """Park poison, put back what is left of messages, postpone others, and make the partial batch response.

    A mark that cannot be parked now is put back. If that fails, too, or no time is left to send, its whole
    message comes again.

    Args:
        handled: what became of the messages.
        park: keeps what a person must look at.
        postpone: changes when messages come again.
        put_back: sends what is left of a message that was marked in part.
        keep: messages whose content a person may still want: they are parked, unless they come again.
    """
    count_receipts(handled.receipts)
    again = {message["messageId"] for message, _ in handled.again}
    _log(handled)
    parked = {message["messageId"] for message, _ in handled.poison}
    kept = [one for one in keep if one["messageId"] not in again | parked]

    def parked_now(message: SqsRecord) -> bool:
        done = _sent(park, message, "not parked")
        count(names.METRIC_PARKED, int(done))
        return done

    def later(message: SqsRecord) -> None:
        put_back(message, pause(message, ACKS))

    aside = [*(message for message, _ in handled.poison), *kept]
    again |= {message["messageId"] for message in aside if not parked_now(message)}
    unparked = [mark for mark, _ in handled.refused if not parked_now(mark)]
    for left in (*(left for left, _ in handled.rests), *unparked):
        message_id = left["messageId"]
        if message_id not in again and not _sent(later, left, "not put back"):
            again.add(message_id)
    overload = [one for one, error in handled.again if isinstance(error, Throttled | ServiceUnavailable)]
    postpone_all(overload, ACKS, postpone)
    count(names.METRIC_POSTPONED, len(overload) + len(handled.rests))
    return partial_batch_response(sorted(again))


def postpone_all(messages: Sequence[SqsRecord], pauses: Backoff, postpone: Postpone) -> None:
    """Let messages come again after pauses that grow; if that fails, after the timeout of their queue."""
    try:
        postpone([(message, pause(message, pauses)) for message in messages])
    except Exception:  # noqa: BLE001  the messages come again all the same
        logger.exception("not postponed: messages come again after the timeout of their queue")


def _sent(send: ParkMessage, message: SqsRecord, otherwise: str) -> bool:
    """Send a message, if there is time; an error is logged, for the others must be handled all the same."""
    if INVOCATION.seconds_for_requests() <= 0:
        return False
    try:
        send(message)
    except Exception:  # noqa: BLE001
        logger.exception(otherwise, extra={"message_id": message["messageId"]})
        return False
    return True


def _log(handled: Handled) -> None:
    for message, error in (*handled.poison, *handled.refused):
        code = getattr(error, "code", "")
        logger.warning("message refused", extra={"message_id": message["messageId"], "code": code})
    codes: set[str] = set()
    for message, why in (*handled.again, *handled.rests):
        if isinstance(why, FaninError):
            codes.add(why.code)
        else:  # a defect, which this message brought to light
            logger.error("message failed", exc_info=why, extra={"message_id": message["messageId"]})
    if codes:
        messages = len(handled.again) + len(handled.rests)
        logger.warning("messages postponed", extra={"messages": messages, "codes": sorted(codes)})
