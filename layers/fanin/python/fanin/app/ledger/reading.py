"""Reading the tree: how far a batch is, what is missing, and whether its levels agree.

Every reader walks down from the root into pending children only. So the cost depends on what is missing and
not on the size of the batch; a budget of reads, with a cursor, bounds each call.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from fanin.app.ledger.settle import Settling
from fanin.app.ledger.walk import CHUNK, Walk, with_totals
from fanin.app.ports import Ports
from fanin.app.ports.words import Tally, WordKey
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.reports import Estimate, Missing, MissingRange, Progress, Verdict, missing_ranges
from fanin.domain.totals import by_name
from fanin.domain.tree import positions, runs_of_masks
from fanin.errors import InvalidRequest

STATUS_READS: Final = 67
"""How many rows a status reads at most: the batch, up to 65 words, and notes of failures with the rest.

For a batch that holds failed items, up to ``_HELD_READS`` of them count those, and fewer words are read.
"""
_HELD_READS: Final = 33
_LEAST: Final = 64
"""Words that a walk reads at least: more than lead to an item, so that each page gets further."""
KEYS_SHOWN: Final = 16
"""Missing items of an answer whose keys are shown; each may take a read."""
INSPECTED: Final = 10_000
"""How many words one inspection reads at most, rounded up to a chunk."""
AROUND: Final = 16
"""Reads of a call that walks, besides its walk: the batch, and those of a repair that completes it."""


class Inspected(NamedTuple):
    """What an inspection found.

    Attributes:
        batch: the row afterwards; complete if all its items are done.
        certain: False if the budget ended the inspection; then the batch must not be ended yet.
    """

    batch: Batch
    certain: bool


class Reading(Settling):
    """The reading side of the ledger."""

    def status(self, batch_id: int, *, exact: bool = False, brief: bool = False) -> Progress:
        batch = self._known.current(batch_id)
        if brief:
            return Progress(batch, 0, batch.items)
        batch, reads = self._held.count(batch, budget=self.rows // 2 if exact else _HELD_READS)
        left = (self.rows if exact else STATUS_READS) - 1 - reads
        progress = self._status(batch, left, exact=exact)
        return replace(progress, cost=self._cost(progress))

    def _cost(self, progress: Progress) -> Estimate:
        """What the batch has cost so far, from what was read anyway."""
        from fanin.domain.costs import estimate  # noqa: PLC0415  an acknowledgement never needs it
        from fanin.domain.prices import prices_or_default  # noqa: PLC0415

        batch = progress.batch
        exact, prices = batch.mode is Mode.EXACT, prices_or_default(self.ports.defaults.region)
        return estimate(batch.items, progress.done_min, batch.failed + batch.held, exact=exact, prices=prices)

    def _status(self, batch: Batch, left: int, *, exact: bool) -> Progress:
        """How far a batch is, by at most so many reads."""
        if batch.mode is Mode.ESTIMATED:
            done = min(batch.acked, batch.items)
            return self._progress(batch, done, done, Tally(whole=False), left)
        if batch.items == 0:
            batch = with_totals(replace(batch, failed_more=False), Tally(), all_read=True)
            return Progress(batch, 0, 0)
        if batch.all_done and not batch.failed_more and (batch.totals_exact or not batch.totals):
            return Progress(batch, batch.items, batch.items)
        if exact:
            walk = Walk(self.ports, batch, budget=max(1, left - STATUS_READS)).finish()
            left -= walk.reads
            if walk.stopped_at is None:
                done = batch.items - walk.pending
                return self._progress(batch, done, done, walk.tally, left)
        return self._bounds(batch, left)

    def _progress(self, batch: Batch, least: int, most: int, tally: Tally, left: int) -> Progress:
        """The progress, and how many items failed as far as the reads that are left show."""
        counted = self._failed.counted(with_totals(batch, tally, all_read=True), tally, budget=left)
        return Progress(counted, least, most)

    def pending(self, batch_id: int, start: int, stop: int) -> set[int]:
        """The ordinals in start ≤ i < stop that are not done; takes at most ``MAX_ROWS_DIRECT`` reads."""
        batch = self._exact(batch_id)
        if batch.all_done:
            return set()
        walk = Walk(self.ports, batch, start=start, stop=stop, budget=limits.MAX_ROWS_DIRECT)
        found = (first + bit for first, leaf in self._leaves(batch, walk, start) for bit in positions(leaf))
        return {ordinal for ordinal in found if ordinal < stop}

    def missing(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Missing:
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        batch = self._exact(batch_id)
        start = ordinal_of(cursor)
        if batch.all_done:
            return Missing(())
        budget = self._walked() - (KEYS_SHOWN if batch.keyed else 0)
        walk = Walk(self.ports, batch, start=start, budget=budget)
        runs = runs_of_masks(self._leaves(batch, walk, start))
        found = list(islice(runs, limit))
        more = next(runs, None)
        after = walk.stopped_at if more is None else more[0]
        ranges = with_keys(self.ports, batch, missing_ranges(batch, found))
        return Missing(ranges, None if after is None else str(after))

    def verify(self, batch_id: int, *, cursor: str | None = None, repair: bool = True) -> Verdict:
        """Walk down from the root and report what disagrees.

        A done word whose parent knows of it is never reached. So every done word that the walk meets below
        the root is a disagreement, and settling it again is the repair.
        """
        batch = self._exact(batch_id)
        start = ordinal_of(cursor)
        tree, root = self.ports.tree, self.ports.tree.root_level(batch.items)
        walk = Walk(self.ports, batch, start=start, budget=self._walked())
        pending, root_done = 0, batch.items == 0
        stale: dict[WordKey, Tally] = {}
        found: list[str] = []
        wrong: list[str] = []
        for level, number, word, tally in walk:
            if level == 0:
                pending += self._leaf(batch, number, word, start).bit_count()
            # The last words of a batch that ended without a close were never settled.
            residue = 0 if batch.closed_at is None else tree.residue(level, number, batch.items)
            if word != residue:
                continue
            if level < root:
                found.append(f"word {level}/{number} is done, but its parent's bit is pending")
                stale[WordKey(batch_id, level, number)] = tally
            else:
                root_done = True
                wrong = _totals_disagree(batch, tally)
        drained = batch.draining and not pending and cursor is None and walk.stopped_at is None
        if drained or (root_done and batch.state is State.CLOSED):
            found.append("every item is done, but the batch is not complete")
        unrepairable = batch.all_done and pending
        if unrepairable:
            found.append(f"the batch is complete, but {pending} items are pending")
        repaired = bool(repair and found and not unrepairable)
        if repaired:
            self.resettle(batch, stale)
            batch = self.finish(self._known.current(batch_id))
        at = None if walk.stopped_at is None else str(walk.stopped_at)
        batch = with_totals(batch, walk.tally, all_read=at is None and cursor is None)
        return Verdict(batch, pending, (*found, *wrong), repaired, at)

    def _bounds(self, batch: Batch, left: int) -> Progress:
        """Bounds from the root and the level below it: at most 65 words.

        A word for which no read is left counts with all its items as pending.
        """
        tree, n = self.ports.tree, batch.items
        lowest = max(0, tree.root_level(n) - 1)
        walk = Walk(self.ports, batch, budget=left - 1, lowest=lowest).finish()  # one is for failures
        # What is done, and what has failed, in unfinished words further down is not known here.
        whole = walk.stopped_at is None and (lowest == 0 or not walk.pending)
        tally = walk.tally._replace(whole=walk.tally.whole and whole)
        most = n - walk.pending if whole else n
        return self._progress(batch, n - walk.pending, most, tally, left - walk.reads)

    def _leaf(self, batch: Batch, number: int, word: int, start: int = 0) -> int:
        """The bits of a word of level 0 that stand for existing, pending items from ``start`` on."""
        tree = self.ports.tree
        word &= ~tree.residue(0, number, batch.items)
        skip = start - number * tree.width
        return word >> skip << skip if skip > 0 else word

    def _leaves(self, batch: Batch, walk: Walk, start: int) -> Iterator[tuple[int, int]]:
        """The first ordinal of each word of level 0 that a walk meets, and its pending bits."""
        width = self.ports.tree.width
        for level, number, word, _ in walk:
            if level == 0:
                yield number * width, self._leaf(batch, number, word, start)

    def failed_among(self, batch_id: int, ordinals: Iterable[int]) -> set[int]:
        """Those ordinals of an exact batch that were marked as failed; reads their words."""
        return self._failed.among(batch_id, ordinals)

    def refresh(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        """Read batches as they are now; from here on this process uses no older rows of them.

        Raises:
            BatchNotFound: a batch does not exist.
            BatchGone: a batch is past its lifetime.
        """
        return self._known.refresh(batch_ids)

    def inspect(self, batch: Batch, *, budget: int = INSPECTED) -> Inspected:
        """Walk down to the first missing item and repair what is on the way; complete it if all are done.

        A process that dies between a word and its parent leaves a done word below a pending bit. If nobody
        repeats its write and the stream's record is lost as well, the batch looks unfinished from above,
        although every item is done. So code that ends a batch as anything but complete, as a deadline may,
        first looks for an item that is really missing.

        A batch with a missing item and nothing to repair costs one read for each level of its tree. What was
        repaired is not visited again, so a further call goes on where the budget ended this one.

        Args:
            batch: the row; an open batch is not complete whatever is done, unless it drains, so nothing is
                read of it.
            budget: how many words to read at most.

        Returns:
            The row afterwards, and whether an end of it, or its being live, is beyond doubt.
        """
        if not batch.waited_for or batch.mode is Mode.ESTIMATED or batch.items == 0:
            return Inspected(self.finish(batch), certain=True)
        walk = Walk(self.ports, batch, budget=budget, chunk=1)
        done: dict[WordKey, Tally] = {}
        missing = False
        for level, number, word, tally in walk:
            residue = self._tree.residue(level, number, batch.items)
            if word == (0 if batch.draining else residue):
                done[WordKey(batch.batch_id, level, number)] = tally
                walk.chunk = CHUNK  # where one was lost there may be many
            elif level == 0 and word != residue:
                missing = True
                break
        batch = self.resettle(batch, done)
        if batch.draining and not missing:
            batch = self.finish(batch)
        return Inspected(batch, certain=missing or batch.state.terminal)

    def _walked(self) -> int:
        """How many words a page walks."""
        return max(_LEAST, self.rows - AROUND)

    def _exact(self, batch_id: int) -> Batch:
        return only_exact(self._known.current(batch_id))


def with_keys(ports: Ports, batch: Batch, ranges: Sequence[MissingRange]) -> tuple[MissingRange, ...]:
    """The ranges with the keys of the first items, which takes up to ``KEYS_SHOWN`` reads."""
    if not batch.keyed:
        return tuple(ranges)
    first = list(islice((n for one in ranges for n in range(one.start, one.stop)), KEYS_SHOWN))
    keys = ports.parts.keys_of(batch.batch_id, first)
    return tuple(
        replace(one, keys=tuple(keys[n] for n in first if n in keys and one.start <= n < one.stop))
        for one in ranges
    )


def only_exact(batch: Batch) -> Batch:
    """Return the row, if its batch has a tree.

    Raises:
        InvalidRequest: the batch is estimated.
    """
    if batch.mode is Mode.ESTIMATED:
        raise InvalidRequest(
            f"batch {batch.batch_id} is estimated: it counts items, but does not know which;"
            " ask for its status"
        )
    return batch


def _totals_disagree(batch: Batch, tally: Tally) -> list[str]:
    """What a complete batch says of its totals, if the done root says something else."""
    if not (batch.all_done and batch.totals_exact):
        return []
    sums = by_name(tuple(batch.totals), tally.sums)
    return [] if sums == batch.totals else [f"the batch has the totals {batch.totals}, but its words {sums}"]


def ordinal_of(cursor: str | None) -> int:
    """Read the ordinal that a page starts at from its cursor.

    Raises:
        InvalidRequest: the text is not such a cursor.
    """
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 13:  # noqa: PLR2004
        raise InvalidRequest(f"cursor {cursor[:32]!r} is not from this listing; start again without a cursor")
    return int(cursor)
