"""What a person should look at: one listing, the most urgent first, for console, command line and library.

The index has an entry for each batch with a flag and none for others, so the listing reads what is wrong and
not what there is. A flag may be older than its batch, so each row is judged as it is now.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from fanin.app.attention import NESTED, trouble_of
from fanin.app.ledger.failed import Failed, Held
from fanin.app.ports import Ports
from fanin.app.ports.words import WordKey
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode, State, Trouble
from fanin.domain.limits import counted
from fanin.domain.reports import Attention, Troubled

_HELD: Final = 20
"""Rows that are read to count the held items of a batch."""
_EACH: Final = 12 + _HELD + 3 * NESTED
"""Rows that are read of a batch at most: index, row, root, targets, a note, redrives, held items; and of
items that failed with nested batches a note of each, one of its child, and the row of that. A live batch has
fewer, with a word of each level instead of what is told of an end."""


def attention(ports: Ports, *, cursor: str | None, limit: int, rows: int) -> Attention:
    """List what a person should look at.

    Args:
        ports: the stores.
        cursor: of the page before.
        limit: how many batches a page has at most.
        rows: how many rows may be read.
    """
    limits.whole("limit", limit, 1, limits.MAX_PAGE)
    page = ports.batches.page_of_flagged(cursor=cursor, limit=min(limit, max(1, rows // _EACH)))
    now = ports.clock.now()
    there = [batch for batch in page.batches if not batch.gone(now)]
    seen = [Held(ports).counted(batch, budget=_HELD) for batch in Failed(ports).listed(there)]
    found = [one for batch in seen for one in _troubled(ports, batch)]
    order = list(Trouble)
    found.sort(key=lambda one: (one.batch.state.terminal, order.index(one.trouble), -one.batch.batch_id))
    if cursor is None and page.cursor is None:
        return Attention(tuple(found), Counter(one.trouble.value for one in found))
    counts = ports.batches.count_flagged()
    numbers = {trouble.value: count for trouble, (count, _) in counts.items()}
    at_least = tuple(trouble.value for trouble, (_, more) in counts.items() if more)
    return Attention(tuple(found), numbers, page.cursor, at_least)


def _troubled(ports: Ports, batch: Batch) -> Iterator[Troubled]:
    trouble = trouble_of(ports, batch) if batch.state.terminal else _live(ports, batch)
    if trouble is not None:
        yield Troubled(batch, trouble, *_reason(batch, trouble))


def _live(ports: Ports, batch: Batch) -> Trouble | None:
    if batch.stands_still:
        if _all_done(ports, batch):
            return Trouble.NOT_CLOSED
        return Trouble.DEAD_LETTERS if batch.attention is Trouble.DEAD_LETTERS else Trouble.STALLED
    if batch.held:
        return Trouble.HELD
    return Trouble.FAILING if batch.failed and batch.tolerated_failures is None else None


def _all_done(ports: Ports, batch: Batch) -> bool:
    if batch.state is not State.OPEN or not batch.items:
        return False
    if batch.mode is Mode.ESTIMATED:
        return batch.counted_out()
    tree = ports.tree
    edge = [WordKey(batch.batch_id, *place) for place in tree.edge(batch.items)]
    words = ports.words.read(edge)
    return tree.all_done([words.get(key, tree.full) for key in edge], batch.items)


def _reason(batch: Batch, trouble: Trouble) -> tuple[str, str]:
    """What is wrong, in a sentence, and the command that helps."""
    failed = f"{'at least ' if batch.failed_more else ''}{counted(batch.failed, 'failed item')}"
    held = f"{'at least ' if batch.may_hold_more else ''}{counted(batch.held, 'held item')}"
    also = "".join(f", {one}" for one, n in ((held, batch.held), (failed, batch.failed)) if n)
    how = "completed" if batch.state is State.COMPLETE else batch.state.replace("_", " ")
    gave_up = "given up: " if batch.state is State.CANCELLED else ""
    return {
        Trouble.STALLED: (f"stalled: {batch.stall_why}{also}", "why"),
        Trouble.DEAD_LETTERS: (f"{batch.stall_why}{also}", "why"),
        Trouble.HELD: (f"{held}, to be redriven or released", "redrive"),
        Trouble.FAILING: (f"{failed} so far", "failures"),
        Trouble.TARGETS: (f"a target could not be told of the end{also}", "targets --redeliver"),
        Trouble.NOT_CLOSED: (f"all {counted(batch.items, 'item')} done, but not closed{also}", "close"),
        Trouble.INCOMPLETE: (f"{how} with items missing{also}", "why"),
        Trouble.FAILED: (f"{gave_up}{failed if batch.failed else 'failed items'}, not redriven", "redrive"),
    }[trouble]
