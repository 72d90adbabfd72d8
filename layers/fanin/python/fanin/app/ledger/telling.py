"""Telling of a batch before its end: that it fails, that it waits for a person, how far it is.

Each is one attribute of the batch's row, written once and only while the batch lives. The stream of the rows
has it published, exactly as it has ends published; see ``early_events``. What nobody has noticed while the
batch lived is told with its end.

No row counts what is done, so progress is counted where an acknowledgement passes one of ``LOOKS`` places of
the batch. Any order of the items meets these evenly, and other acknowledgements read nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from fanin.app.ledger.held import Held
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.walk import Walk
from fanin.app.ports import Ports
from fanin.app.ports.batches import Telling
from fanin.app.ports.parts import FailureRow
from fanin.app.ports.words import WordKey
from fanin.domain.batch import WHOLE, Batch, Trouble
from fanin.domain.tree import positions
from fanin.errors import GONE, ServiceUnavailable, Throttled

LOOKS: Final = 32
"""How many items of a batch with milestones are followed by a count of what is done."""
COUNTED: Final = 16_000
"""How many words one such count reads at most: all that a million items have."""
WAITS: Final = 10_000
"""How many rows are read at most to see whether only held items are left."""
WAITS_FAILING: Final = 67
"""The same after a failure, since many may follow each other; the reaper makes up for what that misses."""


class Teller:
    """Notices what is told of a batch before its end.

    Args:
        ports: the stores.
        known: batch rows that this process remembers.
    """

    def __init__(self, ports: Ports, known: KnownBatches) -> None:
        self._ports = ports
        self._known = known
        self._held = Held(ports)

    def failed(self, batch: Batch) -> None:
        """Note that items of a batch have failed, or are held; never fails.

        Their marks are settled. Whoever fails next, the reaper or the end makes up for what was not noted.
        """
        with suppress(Throttled, ServiceUnavailable, *GONE):
            batch = self._failing(batch)
            if batch.may_wait:
                self._waiting(batch, WAITS_FAILING)

    def marked(self, batch: Batch, spans: Iterable[tuple[int, int]]) -> None:
        """Note the progress of a batch, if items were marked where that is to be counted; never fails.

        Args:
            batch: the row.
            spans: what was marked, as ordinals: start and stop.
        """
        if batch.next_milestone is None:
            return
        stride = max(1, batch.items // LOOKS)
        if any((stop - 1) // stride > (start - 1) // stride for start, stop in spans):
            with suppress(Throttled, ServiceUnavailable, *GONE):
                self._progress(batch)

    def look(self, batch: Batch) -> Batch:
        """Look for whatever is to be told of a batch; of one that has neither holds nor milestones, nothing.

        Args:
            batch: the row, as it is now.

        Returns:
            The row afterwards.
        """
        if batch.may_wait:
            batch = self._waiting(batch, WAITS)
        return batch if batch.next_milestone is None else self._progress(batch)

    def _failing(self, batch: Batch) -> Batch:
        if batch.failing_at is not None or batch.state.terminal:
            return batch
        trouble = Trouble.HELD if batch.holds else Trouble.FAILING
        return self._tell(batch, Telling("failing_at", self._ports.clock.now(), trouble))

    def _waiting(self, batch: Batch, budget: int) -> Batch:
        if not self._only_held(batch, budget):
            return batch
        if batch.draining and (row := self._known.current(batch.batch_id)).items > batch.items:
            return row  # those that were added meanwhile may be pending
        batch = self._failing(batch)
        return self._tell(batch, Telling("waiting_at", self._ports.clock.now()))

    def _only_held(self, batch: Batch, budget: int) -> bool:
        """Whether items are pending, and all of them are held for certain; the first that is not ends it."""
        walk = Walk(self._ports, batch, budget=budget // 3, chunk=1)
        notes: dict[int, FailureRow] = {}
        for level, number, word, _ in walk:
            if level == 0:
                bits = positions(word & ~self._ports.tree.residue(0, number, batch.items))
                found = [number * self._ports.tree.width + bit for bit in bits]
                own = self._ports.parts.notes(batch.batch_id, found)
                if len(own) < len(found):
                    return False
                notes |= own
        if not notes or walk.stopped_at is not None:
            return False
        return len(self._held.takings(batch, list(notes.values())).free) == len(notes)

    def _progress(self, batch: Batch) -> Batch:
        percent = min(self._least(batch) * WHOLE // max(1, batch.items), WHOLE - 1)
        reached = [one for one in batch.milestones if batch.milestone < one <= percent]
        if not reached:
            return batch
        row = self._known.current(batch.batch_id)
        if row.milestones != batch.milestones:
            return row  # this process did not know of a change; the next look does
        return self._tell(row, Telling("milestone", reached[-1]))

    def _least(self, batch: Batch) -> int:
        """At least so many items are done: exactly so many, unless that takes too many reads."""
        tree, n, left = self._ports.tree, batch.items, COUNTED
        level, numbers, pending = tree.root_level(n), [0], 0
        while numbers and level >= 0:
            pending += sum(tree.size(level, number, n) for number in numbers[left:])
            keys = [WordKey(batch.batch_id, level, number) for number in numbers[:left]]
            words = self._ports.words.read(keys) if keys else {}
            left -= len(keys)
            numbers = [
                child
                for key in keys
                for child in tree.children(level, key.number, words.get(key, tree.full), n)
            ]
            level -= 1
        return n - pending - (len(numbers) if level < 0 else 0)

    def _tell(self, batch: Batch, told: Telling) -> Batch:
        if (row := self._ports.batches.tell(batch.batch_id, told)) is None:
            return self._known.current(batch.batch_id)  # others were first
        return self._known.remember(row)
