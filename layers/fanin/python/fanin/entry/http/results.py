"""What an action did, as its answer says it: for the action log.

These are numbers and words of the service's own. Nothing here is a text that a user wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the library has the table, too
    from fanin.domain.batch import Batch
    from fanin.domain.buffer import Buffer
    from fanin.domain.redrives import Redriving
    from fanin.domain.reports import Expired, ReleasedItems, Verdict
    from fanin.domain.targets import TargetReports
    from fanin.wire.actions import Result


def of_batch(batch: Batch) -> Result:
    """The state of a batch that was closed or cancelled; it may have ended before."""
    return {"state": batch.state.value, "items": batch.items}


def of_expiry(expired: Expired) -> Result:
    """How many batches an expiry orphaned or removed."""
    return {"batches": expired.batches, "items": expired.items}


def of_release(released: ReleasedItems) -> Result:
    """How many held items a call released; ``more`` says that the next page has others."""
    more = released.cursor is not None
    return {"released": released.released, "more": more, **of_batch(released.batch)}


def of_verdict(verdict: Verdict) -> Result:
    """What a verification found, and whether it repaired that."""
    return {
        "disagreements": len(verdict.disagreements),
        "repaired": verdict.repaired,
        "pending": verdict.pending,
        "more": verdict.cursor is not None,
    }


def of_redrive(redrive: Redriving) -> Result:
    """How many failures a redrive has sent so far, and the batch that has the items now."""
    into = {} if redrive.batch_id is None else {"batch_id": redrive.batch_id}
    return {
        **into,
        "redrive": redrive.name,
        "state": redrive.state.value,
        "items": redrive.items,
        "already": redrive.already,
        "not_kept": redrive.not_kept,
        "refused": sum(redrive.refused.values()),
    }


def of_targets(reports: TargetReports) -> Result:
    """How many targets are in each state afterwards."""
    states = [report.state.value for report in reports.targets]
    return {"targets": len(states), **{state: states.count(state) for state in sorted(set(states))}}


def of_buffer(buffer: Buffer) -> Result:
    """The limit of a buffer that was made or changed."""
    return {"limit": buffer.limit}


def of_deletion(deleted: bool) -> Result:
    """Whether there was something to delete."""
    return {"deleted": deleted}
