"""Numbers in sentences, and how far a batch is, as questions and outcomes say it."""

from fanin.console.actions.action import ShownFacts
from fanin.domain.batch import Batch
from fanin.domain.limits import counted
from fanin.domain.reports import Progress


def between(low: int, high: int, noun: str) -> str:
    """A number that is known within bounds, with its noun.

    >>> between(3, 3, "item"), between(3, 1_000, "item")
    ('3 items', '3 to 1,000 items')
    """
    return counted(high, noun) if low == high else f"{low:,} to {high:,} {noun}s"


def was(*bounds: int) -> str:
    """The verb that follows a number, or its bounds, in the past.

    >>> was(1), was(2)
    ('was', 'were')
    """
    return "was" if {*bounds} == {1} else "were"


def are(*bounds: int) -> str:
    """The verb that follows a number, or its bounds.

    >>> are(1), are(2), are(0, 1)
    ('is', 'are', 'are')
    """
    return "is" if {*bounds} == {1} else "are"


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
