"""Settling: carrying cleared bits up, level by level, until the batch completes.

A word is always written before its parent. A crash in between loses nothing: the finished word is found again
by a repeat of the write, by the close, or through the stream of finished words.

While a batch is open its size is not known, and the close alone can make a word at its right edge *done*. So
after the write of such a word the batch row is read once more: either the closer sees the acker's word, or
the acker sees the closed batch. One of them always completes the batch.

A batch that drains is an open one which is closed by the one who sees that all its items are done, provided
that it still has no others. While it drains only words that are 0 are carried up, so that any word may grow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from fanin.app.ledger.failed import Failed, Held
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.known_batches import KnownBatches, all_of
from fanin.app.ports import Ports
from fanin.app.ports.batches import Completion
from fanin.app.ports.words import Clear, Cleared, Outcome, Tallied, Tally, WordKey
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.totals import by_name, in_order
from fanin.domain.tree import Tree, positions
from fanin.errors import GONE, BatchGone, FaninError, ServiceUnavailable, Throttled

Words: TypeAlias = Mapping[WordKey, Tallied]
Brought: TypeAlias = Mapping[WordKey, Mapping[int, Tally]]
"""What items bring to the totals of their batches: word of level 0 → position → values.

Values that are not whole leave the totals of the batch inexact: a nested batch may not know its own.
"""
NOTHING_BROUGHT: Final[Brought] = {}


def brought(
    batch: Batch, values: Iterable[tuple[int, Mapping[str, int]]], tree: Tree, *, whole: bool = True
) -> Brought:
    """What items of a batch bring to its totals, by the words of level 0 that hold them.

    Args:
        batch: the row; its totals give the order of the sums.
        values: (ordinal, values by the names of totals).
        tree: the shape.
        whole: whether the values are exact; the sums of a nested batch may not be.

    Raises:
        InvalidRequest: the batch has no total of such a name.
    """
    names = tuple(batch.totals)
    words: dict[WordKey, dict[int, Tally]] = {}
    for ordinal, one in values:
        number, position = divmod(ordinal, tree.width)
        sums = in_order(one, names, batch_id=batch.batch_id)
        words.setdefault(WordKey(batch.batch_id, 0, number), {})[position] = Tally(sums=sums, whole=whole)
    return words


@dataclass
class _Change:
    """What to write to a word.

    Attributes:
        mask: bits to clear.
        carried: position → tally of the finished word below, which goes up with its bit; on level 0, what the
            item there brings to the totals.
        failed: those bits that are also recorded as failed, on level 0.
    """

    mask: int = 0
    carried: dict[int, Tally] = field(default_factory=dict)
    failed: int = 0

    def add(self, other: _Change) -> None:
        self.mask |= other.mask
        self.carried |= other.carried


class Settling:
    """Clears bits, carries finished words up, and completes batches: all use cases of the ledger stand on it.

    Callers have read every batch that they settle. One instance serves one process. It remembers the batches
    that it has read, and is safe to use from threads.

    Args:
        ports: the stores and the rest of the world.
        kinds: hooks of the patterns for the end, the deadline and the idle time of their batches.
        known: batch rows that the process remembers; by default none yet.
        redrives: whether listings of failures say which redrive took each; nothing has at the end of a batch.
        rows: how many rows a call reads at most that looks for something, or lists.

    Attributes:
        ports: as given; the patterns on the ledger use them.
        rows: as given; the patterns keep to it, too.
    """

    def __init__(
        self,
        ports: Ports,
        kinds: Kinds | None = None,
        known: KnownBatches | None = None,
        *,
        redrives: bool = True,
        rows: int = limits.MAX_ROWS,
    ) -> None:
        self.ports = ports
        self.rows = rows
        self._kinds = kinds or Kinds()
        self._known = known or KnownBatches(ports.batches, ports.clock)
        self._redrives = redrives
        self._tree = ports.tree
        self._failed = Failed(ports)
        self._held = Held(ports)

    def try_to_settle(
        self,
        masks: Mapping[WordKey, int],
        *,
        failed: Mapping[WordKey, int] = {},
        brought: Brought = NOTHING_BROUGHT,
    ) -> dict[WordKey, Outcome]:
        """Clear bits, and settle what they finish; each word is written once, parents included.

        A word that the store cannot write now does not delay the others.

        Args:
            masks: word → mask of bits to clear, on any levels, of any batches.
            failed: word of level 0 → those of its bits that are also recorded as failed.
            brought: what items bring to the totals of their batches.

        Returns:
            What the write of each word of ``masks`` found; an error for a word that was not written, or
            finished a word above that was not, so that a repeat has something to do.
        """
        changes = {
            key: _Change(mask, self._carried(key, mask, brought), failed.get(key, 0))
            for key, mask in masks.items()
        }
        return self._settle(changes)

    def _bits_of(self, batch: Batch, ordinals: Iterable[int]) -> dict[WordKey, int]:
        """The bits of items."""
        masks = self._tree.masks(ordinals)
        return {WordKey(batch.batch_id, 0, number): mask for number, mask in masks.items()}

    def _carried(self, key: WordKey, mask: int, brought: Brought) -> dict[int, Tally]:
        """What each item of a word brings to the totals of its batch; many bring nothing, and add zeros."""
        totals = () if key.level else self._row(key).totals
        if not totals:
            return {}
        nothing, values = Tally(sums=(0,) * len(totals)), brought.get(key, {})
        return {at: values.get(at, nothing) for at in positions(mask)}

    def _settle(self, changes: Mapping[WordKey, _Change]) -> dict[WordKey, Outcome]:
        pending: dict[int, dict[WordKey, _Change]] = {}
        for key, change in changes.items():
            pending.setdefault(key.level, {})[key] = change
        outcomes: dict[WordKey, Outcome] = {}
        words: dict[WordKey, Tallied] = {}
        finished: set[WordKey] = set()
        while pending:
            level = min(pending)
            todo = pending.pop(level)
            answers = self._clear(todo, words)
            outcomes |= answers
            cleared = {key: answer for key, answer in answers.items() if isinstance(answer, Cleared)}
            if any(answer.first != todo[key].mask for key, answer in cleared.items()):
                ahead = [key for above in pending.values() for key in above if key not in words]
                words |= self.ports.words.read_tallied(ahead)
            done = self._done({key: answer.word for key, answer in cleared.items()}, outcomes)
            finished.update(done)
            above = self._above({key: cleared[key].tally for key in done}, outcomes)
            for key, change in above.items():
                pending.setdefault(level + 1, {}).setdefault(key, _Change()).add(change)
        return {key: self._fate(key, outcomes, finished) for key in changes}

    def _fate(self, key: WordKey, outcomes: Mapping[WordKey, Outcome], done: Collection[WordKey]) -> Outcome:
        """What became of a word, and of the words above that it finished."""
        above = key
        while True:
            if isinstance(outcome := outcomes.get(above), FaninError):
                return outcome
            if above not in done:
                return outcomes[key]
            above = WordKey(above.batch_id, above.level + 1, above.number // self._tree.width)

    def _clear(self, changes: Mapping[WordKey, _Change], words: Words) -> dict[WordKey, Outcome]:
        """Clear the bits of words of one level; of words that were read, only the bits that are pending.

        A range that meets done items on one level is likely to meet them on the levels above. There each
        write would be refused and sent again, so those words are read first.
        """
        todo = {key: change.mask for key, change in changes.items()}
        todo |= {key: todo[key] & words[key].word for key in todo if key in words}
        clears: list[Clear] = []
        for key, mask in todo.items():
            if mask:
                expires_at, change = self._row(key).expires_at, changes[key]
                clears.append(Clear(key, mask, expires_at, change.failed, change.carried))
        answers = iter(self.ports.words.clear(clears))
        return {
            key: next(answers) if mask else Cleared(words[key].word, 0, words[key].tally)
            for key, mask in todo.items()
        }

    def finish(self, batch: Batch) -> Batch:
        """Complete a batch that is closed, or drains, if all its items are done; reads a word of each level.

        Returns:
            The row as it is afterwards.
        """
        if not batch.waited_for:
            return batch
        self._known.remember(batch)
        if batch.mode is Mode.ESTIMATED:
            return self._complete(batch, None) if batch.counted_out() else batch
        edge = [WordKey(batch.batch_id, *place) for place in self._tree.edge(batch.items)]
        words = self.ports.words.read_tallied(edge)
        if batch.draining:
            untouched = Tallied(self._tree.full, Tally())
            last = [words.get(key, untouched).word for key in edge]
            if batch.items and not self._tree.all_done(last, batch.items):
                return batch
            batch = self._close(batch)
            if batch.state is not State.CLOSED:
                return batch
        if batch.items == 0:
            return self._complete(batch, Tally().for_totals(len(batch.totals)))
        done = {key: found.tally for key, found in words.items() if self._is_done(key, found.word)}
        self._carry_up(done, words)
        return self._known.cached(batch.batch_id) or batch

    def _close(self, batch: Batch) -> Batch:
        """Close a batch that has drained, unless it has got more items meanwhile."""
        now, activity = self.ports.clock.now(), self._known.activity(replace(batch, state=State.CLOSED))
        row, _ = self.ports.batches.close(batch.batch_id, now=now, activity=activity, grown=batch.grown)
        if row is None:
            raise _removed(batch)
        return self._known.remember(row)

    def resettle(self, batch: Batch, done: Mapping[WordKey, Tally]) -> Batch:
        """Carry up words that a reader found done below a pending bit.

        Args:
            batch: the row.
            done: its words, with what has failed below; a root among them completes the batch, if it is
                closed.

        Returns:
            The row as it is afterwards.
        """
        self._known.remember(batch)
        self._carry_up(done, {})
        return self._known.cached(batch.batch_id) or batch

    def heal(self, finished: Collection[WordKey]) -> None:
        """Settle finished words again, as the stream of the words table reports them.

        Reads first, and writes only what is missing, so it costs little when nothing was lost. Words of
        batches that are gone are ignored.
        """
        rows = self._known.try_reaching(dict.fromkeys([key.batch_id for key in finished], 0))
        there = all_of({n: row for n, row in rows.items() if not isinstance(row, GONE)})
        rising = [key for key in finished if key.batch_id in there]
        errors: dict[WordKey, Outcome] = {}
        while rising:
            self._look_again([key for key in rising if key.level >= self._root_level(key)])
            rising = [key for key in rising if not self._is_top(key) or self._row(key).state is State.CLOSED]
            places = {key: self._parent(key) for key in rising if not self._is_top(key)}
            words = self.ports.words.read({parent for parent, _ in places.values()})
            full = self._tree.full
            lost = {key for key, (parent, mask) in places.items() if words.get(parent, full) & mask}
            found = self.ports.words.read_tallied([k for k in rising if k in lost or k not in places])
            self._carry_up({key: word.tally for key, word in found.items()}, {})
            known = {parent for key, (parent, _) in places.items() if key not in lost}
            behind = {parent for parent, _ in (places[key] for key in lost)}
            rising = self._done({key: words[key] for key in known - behind}, errors)
        all_of(errors)

    def _carry_up(self, done: Mapping[WordKey, Tally], above: Words) -> None:
        """Carry up words that are done, except those whose parent shows it already, as it was read."""
        errors: dict[WordKey, Outcome] = {}
        changes = self._above(done, errors)
        lost = [key for key, up in changes.items() if key not in above or up.mask & above[key].word]
        all_of(errors | self._settle({key: changes[key] for key in lost}))

    def _done(self, words: Mapping[WordKey, int], errors: dict[WordKey, Outcome]) -> list[WordKey]:
        """The words that are done now; reads batch rows for words that may lie at the edge.

        Where these cannot be read, ``errors`` gets the words.
        """
        done, doubtful = [], []
        for key, word in words.items():
            batch = self._row(key)
            if self._is_done(key, word):
                done.append(key)
            elif _unsure(batch) and self._tree.may_be_last(key.level, key.number, word, batch.items):
                doubtful.append(key)
        try:
            self._look_again(doubtful)
        except (Throttled, ServiceUnavailable) as error:
            errors |= dict.fromkeys(doubtful, error)
            return done
        return done + [key for key in doubtful if self._is_done(key, words[key])]

    def _is_done(self, key: WordKey, word: int) -> bool:
        """Whether a word is done, as far as the row tells."""
        if word == 0:
            return True
        batch = self._row(key)
        closed = batch.state is not State.OPEN and batch.items > 0
        return closed and word == self._tree.residue(key.level, key.number, batch.items)

    def _look_again(self, keys: Collection[WordKey]) -> None:
        """Read the batch rows of the keys once more, unless they are known to be closed.

        Those that drain are finished, if all their items are done; also those that were closed for that by a
        process that could not carry up their last words.
        """
        if batch_ids := {key.batch_id for key in keys if _unsure(self._row(key))}:
            for batch in self.ports.batches.read(batch_ids).values():
                self._known.remember(batch)
                if batch.draining_at is not None:
                    self.finish(batch)

    def _above(self, done: Mapping[WordKey, Tally], errors: dict[WordKey, Outcome]) -> dict[WordKey, _Change]:
        """What finished words change in their parents; completes batches whose root is among the words.

        The root of an open batch is not known, so the words may lie above it: a done word at or above the
        root completes the batch. Where that fails, ``errors`` gets the word.
        """
        changes: dict[WordKey, _Change] = {}
        for key, found in done.items():
            batch = self._row(key)
            tally = found.for_totals(len(batch.totals))
            if self._is_top(key):
                try:
                    if batch.state is State.CLOSED:
                        self._complete(batch, tally)
                except (Throttled, ServiceUnavailable, *GONE) as error:
                    errors[key] = error
                continue
            parent, mask = self._parent(key)
            changes.setdefault(parent, _Change()).add(_Change(mask, {key.number % self._tree.width: tally}))
        return changes

    def _is_top(self, key: WordKey) -> bool:
        """Whether nothing of its batch lies above the word."""
        return self._row(key).state is not State.OPEN and key.level >= self._root_level(key)

    def _parent(self, key: WordKey) -> tuple[WordKey, int]:
        """The word above, and the bit in it."""
        level, number, mask = self._tree.parent(key.level, key.number)
        return WordKey(key.batch_id, level, number), mask

    def _complete(self, batch: Batch, tally: Tally | None) -> Batch:
        """Complete a closed batch.

        Args:
            batch: the row.
            tally: of its root; None if it is estimated.
        """
        done = None
        if tally is not None:
            failed, more = (tally.failed, False) if tally.whole else self._failed.at_the_end(batch, tally)
            done = Completion(failed, more, by_name(tuple(batch.totals), tally.sums), tally.whole)
        now, sources = self.ports.clock.now(), (State.CLOSED,)
        row, _ = self.ports.batches.end(batch.batch_id, State.COMPLETE, now=now, sources=sources, done=done)
        if row is None:
            raise _removed(batch)
        return self._known.remember(row)

    def _row(self, key: WordKey) -> Batch:
        return self._known.row(key.batch_id)

    def _root_level(self, key: WordKey) -> int:
        return self._tree.root_level(self._row(key).items)


def _unsure(batch: Batch) -> bool:
    """Whether an edge word does not tell it all: items may follow, or words are to be carried up."""
    return batch.state is State.OPEN or batch.draining_at is not None


def _removed(batch: Batch) -> BatchGone:
    return BatchGone(
        f"batch {batch.batch_id} was removed while its last item was acknowledged; nothing is left to do"
    )
