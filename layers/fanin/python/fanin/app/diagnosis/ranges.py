"""What is known of each range of missing items."""

from __future__ import annotations

from fanin.app.diagnosis.facts import Facts
from fanin.domain.diagnosis import Known, MissingKnown
from fanin.domain.reports import MissingRange


def known_ranges(facts: Facts) -> tuple[MissingKnown, ...]:
    """What is known of the first missing ranges; items of one range may be in different states."""
    return tuple(MissingKnown(found, *_known(facts, found)) for found in facts.missing)


def _known(facts: Facts, found: MissingRange) -> tuple[Known, str]:
    if facts.batch.state.terminal:
        return Known.UNKNOWN, "not done when the batch ended"
    if tried := [row for at, row in facts.retries.items() if found.start <= at < found.stop]:
        last = max(tried, key=lambda row: row.at)
        return Known.RETRYING, f"attempt {last.attempt} at item {last.ordinal} failed: {last.error}"
    for at, child in facts.children.items():
        if found.start <= at < found.stop:
            return Known.CHILD_RUNNING, f"batch {child.batch_id} does the work of item {at}"
    if found.start in facts.held:
        return Known.HELD, f"failed, and held: {facts.held[found.start]}"
    return _by_notes(facts, found)


def _by_notes(facts: Facts, found: MissingRange) -> tuple[Known, str]:
    if facts.held_more:
        return Known.UNKNOWN, "failed items of this batch are held; these may be among them"
    if not facts.unsent(found):
        return _in_a_queue(facts, found)
    if facts.sent:
        return Known.NEVER_SENT, "no note says that these items were sent"
    return Known.UNKNOWN, "no note says whether they were sent"


def _in_a_queue(facts: Facts, found: MissingRange) -> tuple[Known, str]:
    for report in facts.reports_of(found):
        if report.figures is None:
            continue
        if report.figures.visible or report.figures.delayed:
            return Known.WAITING, f"probably in the queue {report.name}"
        if report.figures.in_flight:
            return Known.IN_FLIGHT, f"probably received from the queue {report.name} and not finished"
        if report.dead:
            return Known.UNKNOWN, f"perhaps in the dead-letter queue of {report.name}"
    return Known.UNKNOWN, "no queue that could be looked at shows a message for them"
