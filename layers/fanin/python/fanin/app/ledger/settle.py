"""Settling: carrying cleared bits up, level by level, until the batch completes.

A word is always written before its parent. A crash in between loses nothing: the finished word is found again
by a repeat of the write, by the close, or through the stream of finished words.

While a batch is open its size is not known, and the close alone can make a word at its right edge *done*. So
after the write of such a word the batch row is read once more: either the closer sees the acker's word, or
the acker sees the closed batch. One of them always completes the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ports import Ports
from fanin.app.ports.words import Clear, Cleared, Outcome, WordKey
from fanin.domain.batch import Batch, Mode, State
from fanin.errors import BatchGone, BatchNotFound, FaninError


class Settler:
    """Clears bits, carries finished words up, and completes batches.

    Args:
        ports: the stores.
        known: batch rows that this process remembers; callers have read every batch that they settle.
    """

    def __init__(self, ports: Ports, known: KnownBatches) -> None:
        self._ports = ports
        self._known = known
        self._tree = ports.tree

    def settle(
        self, marks: Mapping[WordKey, int], *, failed: Collection[WordKey] = ()
    ) -> dict[WordKey, Cleared]:
        """Clear bits, and settle what they finish; each word is written once, parents included.

        Args:
            marks: word → mask of bits to clear, on any levels, of any batches.
            failed: words of level 0 whose bits are also recorded as failed.

        Returns:
            What the write of each word of ``marks`` found.

        Raises:
            Throttled, ServiceUnavailable: not all words could be written; repeat the whole call.
        """
        outcomes: dict[WordKey, Cleared] = {}
        for key, outcome in self.try_to_settle(marks, failed=failed).items():
            if isinstance(outcome, FaninError):
                raise outcome
            outcomes[key] = outcome
        return outcomes

    def try_to_settle(
        self, marks: Mapping[WordKey, int], *, failed: Collection[WordKey] = ()
    ) -> dict[WordKey, Outcome]:
        """Like ``settle``, but a word that the store cannot write now does not delay the others.

        Returns:
            What the write of each word of ``marks`` found; an error for a word that was not written, or
            finished a word above that was not, so that a repeat has something to do.

        Raises:
            Throttled, ServiceUnavailable: a batch row could not be read or written; repeat the whole call.
        """
        pending: dict[int, dict[WordKey, int]] = {}
        for key, mask in marks.items():
            pending.setdefault(key.level, {})[key] = mask
        outcomes: dict[WordKey, Outcome] = {}
        words: dict[WordKey, int] = {}
        finished: set[WordKey] = set()
        while pending:
            level = min(pending)
            masks = pending.pop(level)
            answers = self._clear(masks, words, failed=failed)
            outcomes |= answers
            cleared = {key: answer for key, answer in answers.items() if isinstance(answer, Cleared)}
            if any(answer.first != masks[key] for key, answer in cleared.items()):
                ahead = [key for above in pending.values() for key in above if key not in words]
                words |= self._ports.words.read(ahead)
            done = self._done({key: answer.word for key, answer in cleared.items()})
            finished.update(done)
            if parents := self._above(done):
                above = pending.setdefault(level + 1, {})
                for key, mask in parents.items():
                    above[key] = above.get(key, 0) | mask
        return {key: self._fate(key, outcomes, finished) for key in marks}

    def _fate(
        self, key: WordKey, outcomes: Mapping[WordKey, Outcome], finished: Collection[WordKey]
    ) -> Outcome:
        """What became of a word, and of the words above that it finished."""
        above = key
        while above in finished:
            above = WordKey(above.batch_id, above.level + 1, above.number // self._tree.width)
        outcome = outcomes.get(above)
        return outcome if isinstance(outcome, FaninError) else outcomes[key]

    def _clear(
        self, masks: Mapping[WordKey, int], words: Mapping[WordKey, int], *, failed: Collection[WordKey]
    ) -> dict[WordKey, Outcome]:
        """Clear the bits of words of one level; of words that were read, only the bits that are pending.

        A range that meets done items on one level is likely to meet them on the levels above. There each
        write would be refused and sent again, so those words are read first.
        """
        todo = {key: mask & words.get(key, mask) for key, mask in masks.items()}
        clears = [
            Clear(key, mask, self._row(key).expires_at, key in failed) for key, mask in todo.items() if mask
        ]
        answers = iter(self._ports.words.clear(clears))
        return {key: next(answers) if mask else Cleared(words[key], 0) for key, mask in todo.items()}

    def finish(self, batch: Batch) -> Batch:
        """Complete a closed batch if all its items are done, from at most one word of each level.

        Returns:
            The row as it is afterwards.
        """
        if batch.state is not State.CLOSED:
            return batch
        self._known.remember(batch)
        if batch.counted_out() if batch.mode is Mode.ESTIMATED else batch.items == 0:
            return self._complete(batch.batch_id)
        if batch.mode is Mode.EXACT:
            levels = range(self._tree.root_level(batch.items) + 1)
            edge = [WordKey(batch.batch_id, level, self._tree.last(level, batch.items)) for level in levels]
            self._rise(edge, self._ports.words.read(edge))
        return self._known.cached(batch.batch_id) or batch

    def resettle(self, batch: Batch, done: Collection[WordKey]) -> Batch:
        """Carry up words that a reader found done below a pending bit.

        Args:
            batch: the row.
            done: its words; a root among them completes the batch, if it is closed.

        Returns:
            The row as it is afterwards.
        """
        self._known.remember(batch)
        self.settle(self._above(done))
        return self._known.cached(batch.batch_id) or batch

    def heal(self, finished: Collection[WordKey]) -> None:
        """Settle finished words again, as the stream of the words table reports them.

        Reads first, and writes only what is missing, so it costs little when nothing was lost. Words of
        batches that are gone are ignored.
        """
        for batch_id in {key.batch_id for key in finished}:
            try:
                self._known.fresh([batch_id])
            except (BatchNotFound, BatchGone):
                finished = [key for key in finished if key.batch_id != batch_id]
        rising: Collection[WordKey] = finished
        while rising:
            self._look_again([key for key in rising if key.level >= self._root_level(key)])
            parents = self._above(rising)
            words = self._ports.words.read(parents)
            full = self._tree.full
            todo = {key: mask & words.get(key, full) for key, mask in parents.items()}
            self.settle({key: mask for key, mask in todo.items() if mask})
            rising = self._done({key: words[key] for key, mask in todo.items() if not mask})

    def _rise(self, keys: Collection[WordKey], words: Mapping[WordKey, int]) -> None:
        """Carry up the words that are done, except those whose parent among ``words`` shows it already."""
        full = self._tree.full
        done = self._done({key: words.get(key, full) for key in keys})
        parents = self._above(done)
        self.settle({key: mask for key, mask in parents.items() if mask & words.get(key, full)})

    def _done(self, words: Mapping[WordKey, int]) -> list[WordKey]:
        """The words that are done now; reads batch rows for words that may lie at the edge."""
        tree, done, doubtful = self._tree, [], []
        for key, word in words.items():
            if word == 0:
                done.append(key)
                continue
            batch = self._row(key)
            if batch.state is not State.OPEN:
                if self._is_residue(key, word, batch):
                    done.append(key)
            elif tree.may_be_last(key.level, key.number, word, batch.items):
                doubtful.append(key)
        self._look_again(doubtful)
        for key in doubtful:
            batch = self._row(key)
            if batch.state is not State.OPEN and self._is_residue(key, words[key], batch):
                done.append(key)
        return done

    def _look_again(self, keys: Collection[WordKey]) -> None:
        """Read the batch rows of the keys once more, unless they are known to be closed."""
        open_ids = {key.batch_id for key in keys if self._row(key).state is State.OPEN}
        if open_ids:
            for batch in self._ports.batches.read(open_ids).values():
                self._known.remember(batch)

    def _is_residue(self, key: WordKey, word: int, batch: Batch) -> bool:
        return batch.items > 0 and word == self._tree.residue(key.level, key.number, batch.items)

    def _above(self, done: Collection[WordKey]) -> dict[WordKey, int]:
        """The bits of finished words in their parents; completes batches whose root is among the words.

        The root of an open batch is not known, so the words may lie above it: a done word at or above the
        root completes the batch.
        """
        tree = self._tree
        parents: dict[WordKey, int] = {}
        for key in done:
            batch = self._row(key)
            if batch.state is not State.OPEN and key.level >= self._root_level(key):
                if batch.state is State.CLOSED:
                    self._complete(key.batch_id)
                continue
            level, number, mask = tree.parent(key.level, key.number)
            parent = WordKey(key.batch_id, level, number)
            parents[parent] = parents.get(parent, 0) | mask
        return parents

    def _complete(self, batch_id: int) -> Batch:
        row, _ = self._ports.batches.end(
            batch_id, State.COMPLETE, now=self._ports.clock.now(), sources=(State.CLOSED,)
        )
        if row is None:
            raise BatchGone(
                f"batch {batch_id} was removed while its last item was acknowledged; nothing is left to do"
            )
        return self._known.remember(row)

    def _root_level(self, key: WordKey) -> int:
        return self._tree.root_level(self._row(key).items)

    def _row(self, key: WordKey) -> Batch:
        row = self._known.cached(key.batch_id)
        if row is None:  # dropped from the cache in favour of other batches
            row = self._known.current(key.batch_id)
        return row
