"""Inspecting a closed batch before it is ended: is an item missing, or only an update of a parent?

A process that dies between a word and its parent leaves a done word below a pending bit. If nobody repeats
its write and the stream's record is lost as well, the batch looks unfinished from above, although every item
is done. So code that ends a batch as anything but complete, as a deadline may, first looks for an item that
is really missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from fanin.app.ledger.settle import Settler
from fanin.app.ledger.walk import CHUNK, Walk
from fanin.app.ports import Ports
from fanin.app.ports.words import Tally, WordKey
from fanin.domain.batch import LIVE, Batch, Mode, OnDeadline, State

BUDGET: Final = 10_000
"""How many words one inspection reads at most, rounded up to a chunk."""


class Inspected(NamedTuple):
    """What an inspection found.

    Attributes:
        batch: the row afterwards; complete if all its items are done.
        certain: False if the budget ended the inspection; then the batch must not be ended yet.
    """

    batch: Batch
    certain: bool


def inspect(ports: Ports, settler: Settler, batch: Batch, *, budget: int = BUDGET) -> Inspected:
    """Walk down to the first missing item, repair what is on the way; complete the batch if none is missing.

    A batch with a missing item and nothing to repair costs one read for each level of its tree. What was
    repaired is not visited again, so a further call goes on where the budget ended this one.

    Args:
        ports: the stores.
        settler: carries up what is done.
        batch: the row; an open batch is not complete whatever is done, unless it drains, so nothing is read
            of it.
        budget: how many words to read at most.

    Returns:
        The row afterwards, and whether an end of it, or its being live, is beyond doubt.
    """
    if not batch.waited_for or batch.mode is Mode.ESTIMATED or batch.items == 0:
        return Inspected(settler.finish(batch), certain=True)
    walk = Walk(ports, batch, budget=budget, chunk=1)
    done: dict[WordKey, Tally] = {}
    missing = False
    for level, number, word, tally in walk:
        residue = ports.tree.residue(level, number, batch.items)
        if word == (0 if batch.draining else residue):
            done[WordKey(batch.batch_id, level, number)] = tally
            walk.chunk = CHUNK  # where one was lost there may be many
        elif level == 0 and word != residue:
            missing = True
            break
    batch = settler.resettle(batch, done)
    if batch.draining and not missing:
        batch = settler.finish(batch)
    return Inspected(batch, certain=missing or batch.state.terminal)


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
