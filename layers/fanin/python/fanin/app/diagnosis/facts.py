"""What is known of a batch when it is asked why it is not finished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from fanin.app.ports.parts import RetryRow, SentRow
from fanin.app.ports.queues import QueueReport
from fanin.domain import limits
from fanin.domain.batch import Batch, State
from fanin.domain.diagnosis import Known, MissingKnown
from fanin.domain.reports import MissingRange
from fanin.domain.targets import TargetReport

LAG_MS: Final = 60_000
"""How old the figures of SQS may be: "approximate" counts take a minute to settle."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was read, before anything is concluded.

    Attributes:
        batch: the row.
        now: ms.
        done_min: at least so many items are done.
        done_max: at most so many are.
        missing: the first ranges of missing items.
        missing_more: whether there may be others.
        begun: whether some item was seen to be done.
        sent: notes of sent items near the missing ones.
        sent_more: whether there are other notes.
        retries: notes of failed attempts at missing items, by ordinal.
        children: live batches that have a missing item as their parent item, by its ordinal.
        queues: what could be seen of the queues to which missing items were sent.
        held: missing items that are known to be held back by choice, by ordinal, and why they failed.
        held_more: whether others may be held.
        targets: those of a batch that has ended.
    """

    batch: Batch
    now: int
    done_min: int
    done_max: int
    missing: tuple[MissingRange, ...] = ()
    missing_more: bool = False
    begun: bool = False
    sent: tuple[SentRow, ...] = ()
    sent_more: bool = False
    retries: Mapping[int, RetryRow] = field(default_factory=dict)
    children: Mapping[int, Batch] = field(default_factory=dict)
    queues: tuple[QueueReport, ...] = ()
    held: Mapping[int, str] = field(default_factory=dict)
    held_more: bool = False
    targets: tuple[TargetReport, ...] = ()

    @property
    def pending(self) -> int:
        """At most so many items are pending."""
        return self.batch.items - self.done_min

    @property
    def all_done(self) -> bool:
        """Whether every item is known to be done."""
        return self.done_min == self.batch.items

    @property
    def recent(self) -> bool:
        """Whether there may have been activity in the last minute: ``touched_at`` is rounded down."""
        return self.batch.touched_at + self.batch.step >= self.now - LAG_MS

    @property
    def moving(self) -> bool:
        """Whether items are done, and the last activity may be more recent than a stall takes.

        Such a batch may just be slow: that its queue looks idle at one moment proves nothing.
        """
        return self.begun and not self.quiet

    @property
    def quiet(self) -> bool:
        """Whether there was surely no activity for as long as a stall takes."""
        patience = self.batch.stall_after * 1000 or self.batch.idle_ttl * 100
        return self.batch.touched_at + self.batch.step + patience <= self.now

    @property
    def retrying(self) -> bool:
        """Whether a failed attempt is so recent that its message may be hidden: it comes again then."""
        hidden = limits.MAX_VISIBILITY_TIMEOUT * 1000 + LAG_MS
        return any(row.at + hidden > self.now for row in self.retries.values())

    @property
    def left_undone(self) -> bool:
        """Whether the batch has ended without some of its items, and nobody gave it up."""
        batch = self.batch
        return batch.state.terminal and batch.state is not State.CANCELLED and self.done_max < batch.items

    def lost(self, queue: str = "") -> str:
        """What helps where messages are lost, as commands.

        Args:
            queue: URL of the queue that they were sent to; empty if it is not known, or gone.
        """
        batch = self.batch.batch_id
        return (
            f"`fanin resend {batch} FILE --queue {queue or 'URL'}` sends missing items again, from the file"
            f" that `fanin fanout` sent. Or fail them: `fanin fail --range RANGE`; `fanin missing {batch}`"
            " lists their ranges."
        )

    @property
    def open(self) -> bool:
        """Whether a close is missing: one that drains is closed by itself."""
        return self.batch.state is State.OPEN and not self.batch.draining

    @property
    def not_held(self) -> tuple[MissingRange, ...]:
        """The first ranges that are surely not held; what is missing there needs a reason of its own."""
        return () if self.held_more else tuple(one for one in self.missing if one.start not in self.held)

    @property
    def all_held(self) -> bool:
        """Whether every missing item is known to be held, so that nothing but a decision is waited for."""
        missing = sum(one.stop - one.start for one in self.missing)
        return bool(missing) and not self.missing_more and missing == len(self.held)

    def covering(self, found: MissingRange) -> list[SentRow]:
        """The notes of sent items that have some of a range."""
        return [row for row in self.sent if row.start < found.stop and found.start < row.stop]

    def unsent(self, found: MissingRange) -> bool:
        """Whether no note says that an item of a range was sent, and none can be left that does."""
        return not self.sent_more and not self.covering(found)

    def reports_of(self, found: MissingRange) -> Iterator[QueueReport]:
        """What was seen of the queues to which items of a range were sent."""
        queues = {row.queue for row in self.covering(found)}
        return (report for report in self.queues if report.queue in queues)


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
