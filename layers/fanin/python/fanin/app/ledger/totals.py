"""The totals of a batch: what its items have brought, as far as its words show.

The root holds the sum of every finished word below it, and an unfinished word the sum of its own items. So
a walk into pending words only, as for what is missing, meets every value once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fanin.app.ledger.walk import Walk
from fanin.app.ports import Ports
from fanin.app.ports.words import Tally
from fanin.domain.batch import Batch, Mode
from fanin.domain.totals import by_name

BUDGET: Final = 10_000
"""How many words are read at most to sum the totals of a batch up exactly, unless the caller says less."""


class Totals:
    """Sums totals up. For a batch without totals, it reads nothing.

    Args:
        ports: the stores.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def counted(self, batch: Batch, *, budget: int = BUDGET) -> Batch:
        """The row with its totals as they are now.

        Args:
            batch: the row.
            budget: how many words may be read.

        Returns:
            The row; not ``totals_exact`` if the budget ended the walk, or if what an item has brought may be
            missing. Those of an estimated batch count repeats, and are never exact.
        """
        if not batch.totals or batch.totals_exact or batch.mode is Mode.ESTIMATED:
            return batch
        walk = Walk(self._ports, batch, budget=budget)
        for _ in walk:
            pass
        return with_totals(batch, walk.tally, all_read=walk.stopped_at is None)


def with_totals(batch: Batch, tally: Tally, *, all_read: bool) -> Batch:
    """The row with the sums of the words that were read.

    Args:
        batch: the row.
        tally: of these words.
        all_read: whether these are all the words that can hold values.
    """
    if not batch.totals or batch.totals_exact or batch.mode is Mode.ESTIMATED:
        return batch
    totals = by_name(tuple(batch.totals), tally.sums)
    return replace(batch, totals=totals, totals_exact=all_read and tally.whole)
