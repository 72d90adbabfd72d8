"""What a run that acknowledges in bulk has done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.results import Result


@dataclass(frozen=True)
class Acknowledged(Result):
    """What a run did.

    Attributes:
        rows: of the input.
        distinct: items that the rows acknowledge.
        failed: items that the rows fail.
        rejects: rows left out, by reason; repeats are among them.
        first: items that were not done before and are now, in words that were written themselves.
        ranged: items below bits of higher levels that were cleared; some may have been done before.
        duplicates: items that were done before the run, or by a try of it that was refused in part.
        late: items left alone because their batch had ended without them.
        held: failures that stay pending, because their batches hold what fails.
        words: words to clear.
        writes: rows of the tables that were written, those of failures, parents and batches among them.
            Writes of attempts that were lost are not counted.
        completed: batches that are complete now, of those that the input names.
        totals: of a run with totals, the sums of what the items bring, those that were done before included.
    """

    rows: int
    distinct: int
    failed: int
    rejects: dict[str, int] = field(default_factory=dict)
    first: int = 0
    ranged: int = 0
    duplicates: int = 0
    late: int = 0
    held: int = 0
    words: int = 0
    writes: int = 0
    completed: int = 0
    totals: dict[str, int] = field(default_factory=dict)

    @property
    def accounted(self) -> dict[str, int]:
        """Every row once: ``in`` is all others together; ``repeated`` are rows that repeat an item."""
        repeated = self.rejects.get(Reason.DUPLICATE, 0)
        return {
            "in": self.rows,
            "acknowledged": self.distinct,
            "failed": self.failed,
            "repeated": repeated,
            "rejected": sum(self.rejects.values()) - repeated,
        }

    @property
    def ok(self) -> bool:  # type: ignore[override]
        """Whether every row is accounted for."""
        rows, *others = self.accounted.values()
        return rows == sum(others)

    @property
    def detail(self) -> str | None:  # type: ignore[override]
        """What is wrong, if not every row is accounted for."""
        if self.ok:
            return None
        rows, *others = self.accounted.values()
        return (
            f"{rows} rows were read, and {sum(others)} are accounted for: somebody changed the work folder,"
            " or the file system lost a part of it. Start again, which leaves out what is done"
        )

    def summary(self) -> dict[str, Any]:
        """The summary of the job, ready for JSON; docs/how-to/spark/ack.md has what each field says."""
        done = self.distinct + self.failed
        return {**super().summary(), "acks_per_write": round(done / self.writes, 3) if self.writes else None}
