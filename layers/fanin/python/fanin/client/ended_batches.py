"""What a process knows of ended batches; messages of those are dropped."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from threading import Lock
from typing import Final, Literal, TypeAlias, TypeVar

from fanin.client.messages import ReceivedMessage
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.latest import Latest
from fanin.domain.limits import shown
from fanin.domain.marks import ItemRange, Mark, Marked, batch_of
from fanin.errors import BatchGone, FaninError, InvalidRequest

_MOST: Final = 10_000
"""Batches that are remembered; those that no answer named for longest are forgotten first."""

B = TypeVar("B", bound=Batch)


@dataclass(slots=True)
class Heard:
    """What a process knows of a batch.

    Attributes:
        exact: whether it is exact, not estimated; None if that is not known.
        ended: whether it has ended.
        complete: whether it has ended complete.
        doubtful: whether it is complete, and may be estimated; if it is exact, it has ended.
        logged: whether its end was logged.
        answered: when an answer last said that it lives, or did not come, by the clock of ``EndedBatches``;
            None if there was none, or it has ended since.
    """

    exact: bool | None = None
    ended: bool = False
    complete: bool = False
    doubtful: bool = False
    logged: bool = False
    answered: float | None = None


class EndedBatches:
    """Remembers which batches have ended, and when an answer last said that a batch is live.

    Every answer that names a batch teaches it, so it costs nothing. Threads may share it.

    Args:
        monotonic: tells the age of an answer, in seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.monotonic = monotonic
        self._known = Latest[int, Heard](_MOST)
        self._lock = Lock()

    def of(self, batch_id: int) -> Heard:
        """What is known of a batch."""
        with self._lock:
            return self._known.get(batch_id) or Heard()

    def note(self, batch: B) -> B:
        """Learn from a batch, and return it."""
        known = self._named(batch.batch_id)
        known.exact = batch.mode is Mode.EXACT
        self._learn(known, batch.state)
        return batch

    def learn(self, marks: Sequence[Mark], marked: Marked) -> None:
        """Learn from the answer to a request: from receipts, and from refusals of batches that are gone."""
        for place, error in marked.refused.items():
            if isinstance(error, BatchGone) and (batch_id := batch_of(marks[place])) is not None:
                self.gone(batch_id)
        ranges = any(isinstance(mark, ItemRange) for mark in marks)
        for receipt in marked.receipts:
            known = self._named(receipt.batch_id)
            if receipt.first or receipt.duplicates or receipt.held:  # only exact batches know that
                known.exact = True
            elif receipt.ranged and not ranges and known.exact is None:
                known.exact = False  # it counts items that were named by their ids
            state = State.COMPLETE if receipt.complete else receipt.state
            if state is State.COMPLETE and known.exact is None and (receipt.ranged or receipt.late):
                known.doubtful = True
            else:
                self._learn(known, state)

    def look(self, read: Callable[[int], Batch], batch_id: int) -> FaninError | None:
        """Learn from the row of a batch.

        Returns:
            Why it could not be read; None if it was, or the batch was removed.
        """
        try:
            self.note(read(batch_id))
        except BatchGone:
            self.gone(batch_id)
        except FaninError as error:
            return error
        return None

    def gone(self, batch_id: int) -> None:
        """Note that a batch was removed."""
        self._learn(self._named(batch_id), State.CANCELLED)

    def silent(self, batch_id: int) -> None:
        """Note that no answer came to a question about a batch, so that it is not asked again at once."""
        self._learn(self._named(batch_id), State.OPEN)

    def _named(self, batch_id: int) -> Heard:
        """What is known of a batch that an answer names."""
        with self._lock:
            known = self._known[batch_id] = self._known.get(batch_id) or Heard()
        return known

    def _learn(self, known: Heard, state: State) -> None:
        known.doubtful = False
        complete = state is State.COMPLETE
        if state.terminal and not (complete and known.exact is False):
            known.ended, known.complete, known.answered = True, known.complete or complete, None
        elif not known.ended:
            known.answered = self.monotonic()


logger = logging.getLogger("fanin")

SkipEnded: TypeAlias = bool | Literal["look"]
"""Whether messages of ended batches are dropped; ``"look"`` reads the batch first."""

LOOK_SECONDS: Final = 30.0
"""How long an answer about a live batch is believed before ``"look"`` reads it again."""
ASK_SECONDS: Final = 1.0
"""Age of the last answer about a batch from which the first message of a window is acknowledged at once."""


@dataclass(frozen=True)
class Skipping:
    """Decides which messages are dropped.

    What a process learns, it learns from answers that it gets anyway: the receipts of its acknowledgements
    say in which state a batch is. In ``"look"`` it also reads the row of the batch, at most once in 30
    seconds. A receipt of a complete batch may leave open whether the batch is estimated: then, too.

    A message of an estimated batch that is complete is not dropped: the batch may have counted a repeat, and
    be complete before the work of this message was done. Nor is one of a scatter, whose recipient may have to
    act although no reply is waited for.

    Attributes:
        ended: what the process knows.
        read: reads a batch.
        mode: True, ``"look"``, or False, which drops nothing.
        receipts: whether acknowledgements are answered by receipts; those through the ack queue are not.

    Raises:
        InvalidRequest: the mode is another value.
    """

    ended: EndedBatches
    read: Callable[[int], Batch]
    mode: SkipEnded = True
    _: KW_ONLY
    receipts: bool = True

    def __post_init__(self) -> None:
        if self.mode not in (True, False, "look"):
            raise InvalidRequest(f'skip_ended must be True, False or "look", not {shown(self.mode)}')

    def skips(self, message: ReceivedMessage, *, fifo: bool = False) -> bool:
        """Whether to drop a message; logs the first one of each batch.

        On a FIFO queue a message of a complete batch is handled: it comes again behind one that had to be
        handled again, whose effect it must follow.
        """
        batch_id = message.batch_id
        if self.mode is False or batch_id is None or message.expects_reply:
            return False
        known = self.ended.of(batch_id)
        if not known.ended and self._looks(known):
            if error := self.ended.look(self.read, batch_id):  # the message is handled then
                self.ended.silent(batch_id)
                logger.warning(
                    "batch %d cannot be read, so its messages are not dropped: %s", batch_id, error
                )
            known = self.ended.of(batch_id)
        if not known.ended or (fifo and known.complete):
            return False
        if not known.logged:
            known.logged = True
            logger.info("batch %d has ended, and its messages are dropped without being handled", batch_id)
        return True

    def asks(self, message: ReceivedMessage) -> bool:
        """Whether to acknowledge a message at once, because its batch may have ended since the last answer.

        Otherwise a whole window would be handled before its receipts tell. So a process whose last answer is
        a while old asks again with the first message: at most one additional request a second.
        """
        batch_id = message.batch_id
        if self.mode is not True or not self.receipts or batch_id is None:
            return False
        answered = self.ended.of(batch_id).answered
        return answered is not None and self.ended.monotonic() - answered >= ASK_SECONDS

    def _looks(self, known: Heard) -> bool:
        if known.doubtful or self.mode != "look":
            return known.doubtful
        return known.answered is None or self.ended.monotonic() - known.answered >= LOOK_SECONDS
