"""A ledger in memory that counts its accesses to rows, and processes that use it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from fanin.adapters.memory import Accesses, FixedClock, Memory, OnCall
from fanin.app.ledger.service import LedgerService
from fanin.domain import ids
from fanin.domain.batch import Batch, OnFailure, OpenBatch, State
from fanin.domain.ids import MAX_COUNT, Group
from fanin.domain.marks import ItemRange


@dataclass
class Spent:
    """Rows accessed while a ``World.spending`` block ran.

    Attributes:
        reads: rows read, found or not.
        writes: rows written, including refused writes, which DynamoDB bills, too.
        refused: writes whose condition failed.
    """

    reads: int = 0
    writes: int = 0
    refused: int = 0


class World:
    """One set of tables in memory.

    Args:
        on_call: called before and after each access, as ``Memory`` says.

    Attributes:
        clock: a clock that only measurements move.
        memory: the stores.
        ledger: the process that opens, fills and closes batches.
    """

    def __init__(self, on_call: OnCall | None = None) -> None:
        self.clock = FixedClock()
        self.memory = Memory(clock=self.clock, on_call=on_call)
        self.ledger = self.process()

    @property
    def accesses(self) -> Accesses:
        return self.memory.accesses

    def process(self) -> LedgerService:
        """A process that has cached nothing yet."""
        return LedgerService(self.memory.ports())

    def batch(
        self,
        items: int,
        *,
        closed: bool = False,
        on_failure: OnFailure = OnFailure.DONE,
        totals: Sequence[str] = (),
        milestones: Sequence[int] = (),
    ) -> Batch:
        """Open a batch and add items, in as many calls as that takes."""
        batch = self.ledger.open(OpenBatch(on_failure=on_failure, totals=totals, milestones=milestones))
        for added in range(0, items, MAX_COUNT):
            self.ledger.add(batch.batch_id, min(items - added, MAX_COUNT))
        return self.ledger.close(batch.batch_id) if closed else batch

    def ack_range(self, batch: Batch, start: int, stop: int) -> None:
        """Acknowledge items start ≤ i < stop in one call, whichever groups they were added in."""
        starts = range(start, stop, MAX_COUNT)
        self.ledger.mark(
            [ItemRange(span(batch, at, min(stop, at + MAX_COUNT)).prefix) for at in starts]
        ).whole()

    def state(self) -> State:
        """The state of the batch row that was written last."""
        _, row = self.memory.batches.changes[-1]
        return row.state

    def check_complete(self) -> None:
        """Fail the measurement if its batch is not complete."""
        if self.state() is not State.COMPLETE:
            raise AssertionError(f"all items are acknowledged, but the batch is {self.state()}")

    @contextmanager
    def spending(self) -> Iterator[Spent]:
        """Count the rows that the ``with`` block accesses; the counts are set when it ends."""
        accesses, spent = self.accesses, Spent()
        before = accesses.reads.total(), accesses.writes.total(), accesses.refused.total()
        yield spent
        spent.reads = accesses.reads.total() - before[0]
        spent.writes = accesses.writes.total() - before[1]
        spent.refused = accesses.refused.total() - before[2]


def span(batch: Batch, start: int, stop: int) -> Group:
    """A group that names the items start ≤ i < stop of a batch."""
    block = ids.issue(batch.batch_id, start, stop - start, batch.salt)
    return Group(batch.batch_id, block.group_id, block.size)
