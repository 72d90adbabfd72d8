"""Skipping: messages of batches that have ended are dropped without being handled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from fanin.client.ended_batches import EndedBatches
from fanin.client.messages import ReceivedMessage
from fanin.domain.batch import Batch
from fanin.domain.limits import shown
from fanin.errors import BatchGone, FaninError, InvalidRequest

logger = logging.getLogger("fanin")

SkipEnded: TypeAlias = bool | Literal["look"]
"""Whether messages of ended batches are dropped; ``"look"`` reads the batch first."""

LOOK_SECONDS: Final = 30.0
"""How long an answer about a live batch is believed before ``"look"`` reads it again."""
ASK_SECONDS: Final = 1.0
"""Age of the last answer about a batch from which the first message of a window is acknowledged at once."""


class Skipping:
    """Decides which messages are dropped, and counts them.

    What a process learns, it learns from answers that it gets anyway: the receipts of its acknowledgements
    say in which state a batch is. In ``"look"`` it also reads the row of the batch, at most once in 30
    seconds. A receipt of a complete batch may leave open whether the batch is estimated: then, too.

    A message of an estimated batch that is complete is not dropped: the batch may have counted a repeat, and
    be complete before the work of this message was done. Nor is one of a scatter, whose recipient may have to
    act although no reply is waited for.

    Args:
        ended: what the process knows.
        read: reads a batch.
        mode: True, ``"look"``, or False, which drops nothing.
        receipts: whether acknowledgements are answered by receipts; those through the ack queue are not.

    Raises:
        InvalidRequest: the mode is another value.

    Attributes:
        skipped: how many messages were dropped.
    """

    def __init__(
        self,
        ended: EndedBatches,
        read: Callable[[int], Batch],
        mode: SkipEnded = True,
        *,
        receipts: bool = True,
    ) -> None:
        if mode not in (True, False, "look"):
            raise InvalidRequest(f'skip_ended must be True, False or "look", not {shown(mode)}')
        self._ended = ended
        self._read = read
        self._mode = mode
        self._receipts = receipts
        self.skipped = 0

    def skips(self, message: ReceivedMessage, *, fifo: bool = False) -> bool:
        """Whether to drop a message; counts it, and logs the first one of each batch.

        On a FIFO queue a message of a complete batch is handled: it comes again behind one that had to be
        handled again, whose effect it must follow.
        """
        batch_id = message.batch_id
        if self._mode is False or batch_id is None or message.expects_reply:
            return False
        if batch_id not in self._ended and self._looks(batch_id):
            self._look(batch_id)
        if batch_id not in self._ended or (fifo and self._ended.complete(batch_id)):
            return False
        self.skipped += 1
        if self._ended.first_time(batch_id):
            logger.info("batch %d has ended, and its messages are dropped without being handled", batch_id)
        return True

    def asks(self, message: ReceivedMessage) -> bool:
        """Whether to acknowledge a message at once, because its batch may have ended since the last answer.

        Otherwise a whole window would be handled before its receipts tell. So a process whose last answer is
        a while old asks again with the first message: at most one additional request a second.
        """
        batch_id = message.batch_id
        if self._mode is not True or not self._receipts or batch_id is None:
            return False
        age = self._ended.age(batch_id)
        return age is not None and age >= ASK_SECONDS

    def _looks(self, batch_id: int) -> bool:
        if self._ended.doubtful(batch_id):
            return True
        age = self._ended.age(batch_id)
        return self._mode == "look" and (age is None or age >= LOOK_SECONDS)

    def _look(self, batch_id: int) -> None:
        try:
            self._ended.note(self._read(batch_id))
        except BatchGone:
            self._ended.gone(batch_id)
        except FaninError as error:  # the message is handled then, as without a look
            self._ended.silent(batch_id)
            logger.warning("batch %d cannot be read, so its messages are not dropped: %s", batch_id, error)
