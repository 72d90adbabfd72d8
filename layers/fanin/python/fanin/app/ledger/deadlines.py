"""Deadlines: what happens to a batch when its deadline comes."""

from __future__ import annotations

from collections.abc import Callable

from fanin.app.ledger.inspection import inspect
from fanin.app.ledger.settle import Settler
from fanin.app.ports import Ports
from fanin.domain.batch import LIVE, Batch, OnDeadline, State

EARLY_MS = 2_000
"""How early an alarm may ring, since the clocks of two services differ."""


def meet_deadline(
    ports: Ports, settler: Settler, batch_id: int, postpone: Callable[[Batch], Batch | None]
) -> Batch | None:
    """End a batch whose deadline has come, unless all its items are done or its pattern postpones it.

    May be called at any time and any number of times: a batch that is unknown, or has ended, or whose
    deadline lies ahead stays as it is.

    Args:
        ports: the stores.
        settler: completes the batch if all its items are done.
        batch_id: the batch.
        postpone: moves the deadline or ends the batch, and returns the row; None ends it here.

    Returns:
        The row afterwards; None if there is no such batch. It is still live if its pattern postponed it, or
        if more must be repaired than one inspection may: the reaper goes on with it.
    """
    batch = ports.batches.read([batch_id]).get(batch_id)
    now = ports.clock.now()
    if batch is None or batch.state.terminal or batch.deadline is None or now < batch.deadline - EARLY_MS:
        return batch
    batch, certain = inspect(ports, settler, batch)
    if batch.state.terminal or not certain:
        return batch
    if (later := postpone(batch)) is not None:
        return later
    partial = batch.on_deadline is OnDeadline.COMPLETE
    state = State.COMPLETE if partial else State.TIMED_OUT
    row, _ = ports.batches.end(batch_id, state, now=now, sources=LIVE, partial=partial)
    return row
