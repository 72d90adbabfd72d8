"""What a process knows of ended batches; messages of those are dropped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

from fanin.client.messages import ReceivedMessage
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.limits import shown
from fanin.domain.marks import Mark, Marked, batch_of
from fanin.errors import BatchGone, FaninError, InvalidRequest

_MOST: Final = 10_000
"""Batches that are remembered; the oldest are forgotten first."""

B = TypeVar("B", bound=Batch)


class EndedBatches:
    """Remembers which batches have ended, and when an answer last said that a batch is live.

    Every answer that names a batch teaches it, so it costs nothing. Threads may share it: what is forgotten
    or noted twice does no harm.

    Args:
        monotonic: tells the age of an answer, in seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._ended: dict[int, bool] = {}
        self._complete: dict[int, bool] = {}
        self._answered: dict[int, float] = {}
        self._exact: dict[int, bool] = {}
        self._doubtful: dict[int, bool] = {}

    def __contains__(self, batch_id: object) -> bool:
        """Whether a batch is known to have ended."""
        return batch_id in self._ended

    def complete(self, batch_id: int) -> bool:
        """Whether a batch is known to be complete."""
        return batch_id in self._complete

    def note(self, batch: B) -> B:
        """Learn from a batch, and return it."""
        self._exact[batch.batch_id] = batch.mode is Mode.EXACT
        _forget(self._exact)
        self._doubtful.pop(batch.batch_id, None)
        self._learn(batch.batch_id, batch.state)
        return batch

    def learn(self, marks: Sequence[Mark], marked: Marked) -> None:
        """Learn from the answer to a request: from receipts, and from refusals of batches that are gone."""
        for place, error in marked.refused.items():
            if isinstance(error, BatchGone) and (batch_id := batch_of(marks[place])) is not None:
                self.gone(batch_id)
        for receipt in marked.receipts:
            if receipt.first or receipt.duplicates or receipt.held:  # only exact batches know that
                self._exact[receipt.batch_id] = True
                _forget(self._exact)
            state = State.COMPLETE if receipt.complete else receipt.state
            if (
                state is State.COMPLETE
                and receipt.batch_id not in self._exact
                and (receipt.ranged or receipt.late)
            ):
                self._doubtful[receipt.batch_id] = True
                _forget(self._doubtful)
            else:
                self._learn(receipt.batch_id, state)

    def gone(self, batch_id: int) -> None:
        """Note that a batch was removed."""
        self._doubtful.pop(batch_id, None)
        self._end(batch_id)

    def silent(self, batch_id: int) -> None:
        """Note that no answer came to a question about a batch, so that it is not asked again at once."""
        self._doubtful.pop(batch_id, None)
        self._live(batch_id)

    def doubtful(self, batch_id: int) -> bool:
        """Whether a batch is complete, and may be estimated; if it is exact, it has ended."""
        return batch_id in self._doubtful

    def age(self, batch_id: int) -> float | None:
        """Seconds since an answer last said that a batch is live, or did not come; None if there was none."""
        at = self._answered.get(batch_id)
        return None if at is None else self._monotonic() - at

    def first_time(self, batch_id: int) -> bool:
        """True the first time it is called for an ended batch, so that the end is logged once."""
        asked = self._ended.get(batch_id, False)
        self._ended[batch_id] = True
        return not asked

    def _learn(self, batch_id: int, state: State) -> None:
        early = state is State.COMPLETE and not self._exact.get(batch_id, True)
        if state.terminal and not early:
            self._end(batch_id)
            if state is State.COMPLETE:
                self._complete[batch_id] = True
                _forget(self._complete)
        else:
            self._live(batch_id)

    def _end(self, batch_id: int) -> None:
        self._ended.setdefault(batch_id, False)
        self._answered.pop(batch_id, None)
        _forget(self._ended)

    def _live(self, batch_id: int) -> None:
        if batch_id not in self._ended:
            self._answered.pop(batch_id, None)
            self._answered[batch_id] = self._monotonic()
            _forget(self._answered)


def _forget(known: dict[int, bool] | dict[int, float]) -> None:
    for oldest in list(known)[: max(0, len(known) - _MOST)]:
        known.pop(oldest, None)


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
