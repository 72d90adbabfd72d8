"""What the patterns say to the ends, deadlines and idle times of their batches.

A plain batch has no say. A pattern hands its functions to ``LedgerService``, one for each occasion it cares
about; each gets the ledger it is called by, and like all of fanin may be called again with the same batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from fanin.app.api import Ledger
from fanin.app.ports.events import Event
from fanin.domain.batch import Batch, Kind, State

Retell: TypeAlias = Callable[[Ledger, Batch, Event], Event]
"""Called with an ended batch and the event that would be published; returns the one that is."""

Postpone: TypeAlias = Callable[[Ledger, Batch], Batch | None]
"""Called with a live batch, settled, whose deadline has come; returns its row if it lives on with another."""

Idle: TypeAlias = Callable[[Ledger, Batch], State | None]
"""Called with a live batch, settled, that is idle; returns the state it ends in, or None if it is spared.

Who spares a batch has touched its row, so that it is due again only after another idle time.
"""


@dataclass(frozen=True)
class Kinds:
    """The patterns' functions, by the kind of batch and the occasion.

    Attributes:
        ended: what is told when a batch has ended.
        due: whether a batch whose deadline has come is given another.
        idle: how a batch without activity ends; a plain one is orphaned.
    """

    ended: Mapping[Kind, Retell] = field(default_factory=dict)
    due: Mapping[Kind, Postpone] = field(default_factory=dict)
    idle: Mapping[Kind, Idle] = field(default_factory=dict)
