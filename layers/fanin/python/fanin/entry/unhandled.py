"""Messages that could not be handled: poison is parked, and the others come again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.entry.observe import count, logger
from fanin.entry.partial_batch import Message, partial_batch_response
from fanin.errors import FaninError, ServiceUnavailable, Throttled

Park: TypeAlias = Callable[[Message], None]
"""Sends a message that cannot be handled to a queue for people to look at; raises if that fails."""

Postpone: TypeAlias = Callable[[Sequence[tuple[Message, int]]], None]
"""Lets messages come again after so many seconds; if it raises, they come after their queue's timeout."""

PutBack: TypeAlias = Callable[[Message, int], None]
"""Sends a new message with this body to the queue of a message, to be received after so many seconds."""

PAUSES: Final = Backoff(base=20, cap=900)
"""Seconds until a message that overload left unmarked comes again, by how often it was received."""
LEAST_PAUSE: Final = 5


@dataclass
class Unhandled:
    """Messages of which something was not handled.

    Attributes:
        poison: for a person to look at: refused because of their content, so that another delivery would
            fail too, or to be kept.
        postponed: not known to be at fault; another delivery may succeed.
        overload: those of ``postponed`` for which there was no capacity or no time; they come again sooner.
        rests: what is left of messages that were handled in part, each with the id of its message.
        codes: errors for which messages come again, for the log.
    """

    poison: list[Message] = field(default_factory=list)
    postponed: list[Message] = field(default_factory=list)
    overload: list[Message] = field(default_factory=list)
    rests: list[Message] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)

    def refuse(self, message: Message, error: FaninError) -> None:
        """Note a message that a person must look at."""
        logger.warning("message refused", extra={"message_id": message["messageId"], "code": error.code})
        self.poison.append(message)

    def keep(self, messages: Sequence[Message]) -> None:
        """Note messages that were handled, and whose content a person may still want."""
        waiting = {message["messageId"] for message in (*self.poison, *self.postponed)}
        self.poison += [message for message in messages if message["messageId"] not in waiting]

    def postpone(self, message: Message, error: Exception) -> None:
        """Note a message that comes again as it is."""
        self._note(message, error)
        self.postponed.append(message)
        if isinstance(error, Throttled | ServiceUnavailable):
            self.overload.append(message)

    def put_back(self, rest: Message, error: Exception) -> None:
        """Note a message of which only this rest comes again."""
        self._note(rest, error)
        self.rests.append(rest)

    def _note(self, message: Message, error: Exception) -> None:
        if isinstance(error, FaninError):
            self.codes.add(error.code)
        else:  # a defect, which this one message brought to light
            logger.error("message failed", exc_info=error, extra={"message_id": message["messageId"]})

    def response(self, park: Park, postpone: Postpone, put_back: PutBack | None = None) -> dict[str, Any]:
        """Park poison, put rests back and postpone what overload left; make the partial batch response.

        A message that cannot be parked or put back now comes again whole.
        """
        if self.codes:
            messages = len(self.postponed) + len(self.rests)
            logger.warning("messages postponed", extra={"messages": messages, "codes": sorted(self.codes)})
        again = {message["messageId"] for message in self.postponed}
        for message in self.poison:
            try:
                park(message)
            except Exception:  # noqa: BLE001  the other messages must be handled all the same
                logger.exception("not parked", extra={"message_id": message["messageId"]})
                again.add(message["messageId"])
            else:
                count(names.METRIC_PARKED)
        for rest in self.rests:
            if rest["messageId"] in again or put_back is None:
                again.add(rest["messageId"])
                continue
            try:
                put_back(rest, _pause(rest))
            except Exception:  # noqa: BLE001
                logger.exception("not put back", extra={"message_id": rest["messageId"]})
                again.add(rest["messageId"])
        try:
            postpone([(message, _pause(message)) for message in self.overload])
        except Exception:  # noqa: BLE001
            logger.exception("not postponed: messages come again after the timeout of their queue")
        count(names.METRIC_POSTPONED, len(self.overload) + len(self.rests))
        return partial_batch_response(sorted(again))


def _pause(message: Message) -> int:
    received = int(message.get("attributes", {}).get("ApproximateReceiveCount", 1))
    return int(PAUSES.delay(received - 1, at_least=LEAST_PAUSE))
