"""What acknowledged items bring, and what of it counts: the values of the write that cleared the item's bit.

Which write that is cannot be told from answers: they are lost, requests come late, and a call that dies may
have written. So the raw words are looked at around each write, without the code under test.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any, Final

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.words import Clear
from fanin.domain.batch import Batch
from fanin.domain.marks import Done, Failure, Mark, Marked
from fanin.domain.tree import positions
from tests.stateful import raw_parts
from tests.stateful.model import named_by, require

NAMES: Final = ("net", "size")
"""Totals of a batch: one may fall, the other only grows."""
RESULT: Final = "result"
"""Stands among the values of a write that came with a result."""
LARGE: Final = 2**53

Values = Mapping[str, int]


class ValuesModel:
    """Follows every write to a leaf, and knows whose values it had to add.

    Args:
        rng: decides what items bring.
        actor: name of whoever acts.

    Attributes:
        counted: batch → ordinal → values of the write that cleared its bit.
        beaten: how many values came with an item that was marked before, by batch.
    """

    def __init__(self, rng: Random, actor: Callable[[], str]) -> None:
        self._rng = rng
        self._actor = actor
        self._memory = Memory()
        self._calls: dict[str, Mapping[int, Mapping[int, Values]]] = {}
        self._offers: dict[int, tuple[Clear, Mapping[int, Values]]] = {}
        self.counted: defaultdict[int, dict[int, Values]] = defaultdict(dict)
        self.beaten: defaultdict[int, int] = defaultdict(int)
        self._told: defaultdict[int, dict[int, object]] = defaultdict(dict)

    def watch(self, memory: Memory) -> None:
        """Look at the words before and after each write."""
        self._memory, words = memory, memory.words

        def watched(clear: Clear, mask: int) -> Any:
            before = words._words.get(clear.key, words._full)
            answer = type(words)._attempt(words, clear, mask)
            self._note(clear, before, before & ~words._words.get(clear.key, words._full))
            return answer

        words._attempt = watched

    @contextmanager
    def bringing(self, marks: Sequence[Mark], rows: Mapping[int, Batch]) -> Iterator[list[Mark]]:
        """Draw what the items of one call bring; a repeat of a call draws anew, as repeated work may."""
        brought = [self._bring(mark, rows[named_by(mark)[0]]) for mark in marks]
        with self._calling(brought):
            yield brought

    def _bring(self, mark: Mark, row: Batch) -> Mark:
        totals = self._draw() if row.totals and self._rng.random() < 0.8 else {}
        if isinstance(mark, str | Done):
            result = self._rng.randrange(2**32) if row.results and self._rng.random() < 0.8 else None
            return Done(mark if isinstance(mark, str) else mark.item, totals, result)
        return replace(mark, totals=totals) if isinstance(mark, Failure) else mark

    @contextmanager
    def _calling(self, marks: Sequence[Mark]) -> Iterator[None]:
        """The first mark of each item decides, with its values; a range brings none."""
        call: defaultdict[int, dict[int, Values]] = defaultdict(dict)
        for mark in marks:
            batch_id, ordinals = named_by(mark)
            values = dict(mark.totals) if isinstance(mark, Done | Failure) else {}
            if isinstance(mark, Done) and mark.result is not None:
                values[RESULT] = 1
            call[batch_id] = dict.fromkeys(ordinals, values) | call[batch_id]
        self._calls[self._actor()] = call
        try:
            yield
        finally:
            del self._calls[self._actor()]

    def watch_parents(self, service: LedgerService) -> LedgerService:
        """Note what the service hands to the parent item of a complete child: the sums of the child."""
        hand = service.mark_parent

        def handing(mark: Done | Failure, *, exact: bool) -> Marked:
            item, totals = mark.item, mark.totals
            whole = [row for row in self._memory.batches._rows.values() if row.all_done and row.totals]
            for child in (row for row in whole if exact and totals and row.parent_item == item):
                expected = self.expected(child.batch_id)
                require(
                    dict(totals) == expected, f"{child}: the totals handed over are {totals}, not {expected}"
                )
            with self._calling([mark]):
                return hand(mark, exact=exact)

        service.mark_parent = handing
        return service

    def _draw(self) -> Values:
        rng = self._rng
        values = {"net": rng.choice((rng.randint(-9, 9), LARGE, -LARGE)), "size": rng.randint(0, 5)}
        return {name: values[name] for name in NAMES if rng.random() < 0.9}

    def offer(self, clear: Clear) -> None:
        """Somebody is about to send a write."""
        batch_id, level, _ = clear.key
        values = {} if level else self._calls.get(self._actor(), {}).get(batch_id, {})
        self._offers[id(clear)] = clear, values

    def _note(self, clear: Clear, before: int, first: int) -> None:
        batch_id, level, number = clear.key
        if level:
            return
        _, values = self._offers[id(clear)]
        base = number * self._memory.tree.width
        for position in positions(first):
            self.counted[batch_id][base + position] = values.get(base + position, {})
        late = sum(
            not before >> ordinal - base & 1
            for ordinal, brought in values.items()
            if brought and 0 <= ordinal - base < before.bit_length()
        )
        self.beaten[batch_id] += late

    def expected(self, batch_id: int) -> dict[str, int]:
        """The totals of a batch, at this moment."""
        values = self.counted[batch_id].values()
        return {name: sum(brought.get(name, 0) for brought in values) for name in NAMES}

    def check_results(self, batch_id: int, listed: Mapping[int, object], succeeded: AbstractSet[int]) -> None:
        """Compare the results that somebody was told with what was stored first, while nobody writes.

        Args:
            batch_id: of the batch.
            listed: the results, by the ordinals of their items.
            succeeded: ordinals of the items that are done, and did not fail.
        """
        rows = raw_parts.results(self._memory, batch_id, max((*succeeded, *listed), default=-1) + 1)
        stored = {n: json.loads(row.content) for n, row in rows.items() if n in succeeded}
        require(listed == stored, f"{batch_id}: the results are {listed}, and not {stored}")
        told, self._told[batch_id] = self._told[batch_id], dict(listed)
        require(told.items() <= listed.items(), f"{batch_id}: the results were {told}, and are {listed}")
        brought = {n for n, values in self.counted[batch_id].items() if RESULT in values}
        require(brought <= listed.keys(), f"{batch_id}: {brought - listed.keys()} were done without results")

    def check(self, row: Batch, *, exact: bool, what: str) -> None:
        """Compare the totals that somebody was told, while nobody writes.

        Args:
            row: with the totals.
            exact: whether it must know them exactly.
            what: who says so.
        """
        if not row.totals:
            return
        expected = self.expected(row.batch_id)
        require(
            row.totals_exact or not exact, f"{what}: the totals {row.totals} are not exact, but {expected}"
        )
        wrong = row.totals_exact and row.totals != expected
        require(not wrong, f"{what}: the totals are {row.totals}, and not {expected}")
