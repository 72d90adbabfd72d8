"""How far a batch is, as questions and outcomes say it."""

from __future__ import annotations

from fanin.console.actions.action import ShownFacts
from fanin.console.actions.words import between
from fanin.domain.batch import Batch
from fanin.domain.reports import Progress


def state_of(batch: Batch) -> str:
    """The state of a batch in words."""
    return str(batch.state).replace("_", " ")


def not_done(progress: Progress) -> tuple[int, int]:
    """Bounds of the number of items that are not done."""
    items = progress.batch.items
    return max(items - progress.done_max, 0), max(items - progress.done_min, 0)


def facts_of(progress: Progress) -> ShownFacts:
    """How far a batch is."""
    batch = progress.batch
    found = [
        ("State", state_of(batch)),
        ("Items", f"{batch.items:,}"),
        ("Not done", between(*not_done(progress), "item")),
    ]
    found += [("Failed", f"{batch.failed:,}")] if batch.failed else []
    found += [("Held", f"{batch.held:,}")] if batch.held else []
    return tuple(found)
