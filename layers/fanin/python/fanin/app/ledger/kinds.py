"""Hooks by which a pattern handles the end, the deadline and the idle time of its batches.

A plain batch has none. A pattern registers a function for each occasion that it cares about. Each function
gets the ledger that calls it, and may be called again with the same batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from fanin.app.api import Ledger
from fanin.app.ports.events import Event
from fanin.domain.batch import Batch, Kind, State

OnEnd: TypeAlias = Callable[[Ledger, Batch, Event], Event]
"""Called with an ended batch, a ledger that can read it even if it was removed since, and its event; returns
the event to publish."""

OnAnnounced: TypeAlias = Callable[[Batch], None]
"""Called with an ended batch after its event was published. If it raises, all of it is done again later."""

OnDue: TypeAlias = Callable[[Ledger, Batch], Batch | None]
"""Called with a live, settled batch whose deadline has come. Returns the row after postponing the deadline or
ending the batch; None lets the ledger end it."""

OnIdle: TypeAlias = Callable[[Ledger, Batch], State | None]
"""Called with a live, settled batch that is idle; returns the state it ends in, or None to spare it.

A function that spares a batch must touch its row, so that it is due again only after another idle time.
"""


OnStalled: TypeAlias = Callable[[Batch], Event | None]
"""Called with a live, settled batch that had no activity for its ``stall_after``; returns the event that
tells of it, or None if it waits for a good reason."""


@dataclass(frozen=True)
class Kinds:
    """The patterns' functions, by kind of batch.

    Attributes:
        ended: change the event of a batch that has ended.
        announced: do what else follows from the end, such as a message to those who wait for it.
        due: may postpone a deadline that has come.
        idle: decide how a batch without activity ends; a plain one is orphaned.
        stalled: says whether a batch without activity has stalled; None tells of no stall.
    """

    ended: Mapping[Kind, OnEnd] = field(default_factory=dict)
    announced: Mapping[Kind, OnAnnounced] = field(default_factory=dict)
    due: Mapping[Kind, OnDue] = field(default_factory=dict)
    idle: Mapping[Kind, OnIdle] = field(default_factory=dict)
    stalled: OnStalled | None = None
