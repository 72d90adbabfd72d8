"""Noting what was sent: one write for each block, so that a diagnosis knows the queue of each item."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, TypeAlias

from fanin.domain import ids
from fanin.domain.diagnosis import SentItems
from fanin.domain.tree import runs

NoteSent: TypeAlias = Callable[[int, SentItems], None]
"""Notes that a queue has the messages of items of a batch; it does not raise."""


class _Block(NamedTuple):
    """A block that is being sent.

    Attributes:
        first: ordinal of its first item.
        stop: one past the last.
        upto: how many messages have been sent or refused when it is done, of all blocks so far.
    """

    first: int
    stop: int
    upto: int


class SentNotes:
    """Notes the blocks of one call of ``send``, each when all of its messages were sent or refused.

    Blocks that follow each other without a gap share one note, which grows: however many blocks, a call of
    ``send`` that nobody interrupts leaves one row. A refused message ends it, since its item was not sent.

    Args:
        batch_id: the batch.
        queue: URL.
        note: writes a note.
    """

    def __init__(self, batch_id: int, queue: str, note: NoteSent) -> None:
        self._batch_id = batch_id
        self._queue = queue
        self._note = note
        self._blocks: deque[_Block] = deque()
        self._entries = 0
        self._answered = 0
        self._start = self._stop = -1

    def begin(self, prefix: str, messages: int) -> None:
        """Note that a block is about to be sent.

        Args:
            prefix: ``<batch id>:<group id>`` of its items.
            messages: how many of them are sent; items that were done before are not.
        """
        block = ids.parse_prefix(prefix)
        self._entries += messages
        self._blocks.append(_Block(block.first, block.stop, self._entries))

    def answered(self, messages: int, refused: Collection[str]) -> None:
        """Note that the queue has answered a request.

        Args:
            messages: how many it has accepted or refused.
            refused: ids of all items that it has refused so far.
        """
        self._answered += messages
        while self._blocks and self._blocks[0].upto <= self._answered:
            block = self._blocks.popleft()
            for start, stop in _accepted(block, refused):
                self._extend(start, stop)

    def _extend(self, start: int, stop: int) -> None:
        if start != self._stop:
            self._start = start
        self._stop = stop
        self._note(self._batch_id, SentItems(self._queue, self._start, self._stop))


def _accepted(block: _Block, refused: Collection[str]) -> Iterator[tuple[int, int]]:
    """The ranges of a block without the items that were refused."""
    if not refused:
        return iter([(block.first, block.stop)])
    without = {ordinal for _, ordinal in map(ids.parse_item, refused)}
    return runs(ordinal for ordinal in range(block.first, block.stop) if ordinal not in without)
