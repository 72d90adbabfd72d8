"""Reads what a diagnosis stands on: rows, notes and queues, within a budget that no batch exceeds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from fanin.app.ledger.failed import Held
from fanin.app.ledger.reading import with_keys
from fanin.app.ledger.walk import Walk
from fanin.app.ports import Ports
from fanin.app.ports.batches import ItemPlace
from fanin.app.ports.parts import RetryRow, SentRow
from fanin.app.ports.queues import QueueReport
from fanin.app.targets.records import read_targets
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.diagnosis import Known, MissingKnown
from fanin.domain.reports import MissingRange, missing_ranges
from fanin.domain.targets import TargetReport
from fanin.domain.tree import runs

MOST_READS: Final = 100
"""Rows and requests to queues that one diagnosis takes at most: the sum of the following, and the batch row.

A chunk may begin below the budget of words, and a queue takes four requests. A batch that holds failed items
has fewer reads for its words; each note of a failure that is looked at takes two, and each retry one more.
"""
WORDS: Final = 40
WORDS_HOLDING: Final = 16
HELD: Final = 8
CHUNK: Final = 8
RANGES: Final = 10
SENT: Final = 16
RETRIES: Final = 12
CHILDREN: Final = 4
QUEUES: Final = 3


def gather(ports: Ports, batch: Batch) -> Facts:
    """Read what is known of a batch, whose row was read just now."""
    facts = _walk(ports, batch)
    batch, found = facts.batch, facts.missing
    if batch.state.terminal:
        kept = read_targets(ports.records, batch.batch_id, range(batch.targets)) if batch.targets else ()
        facts = replace(facts, targets=tuple(one.report for one in kept))
    if facts.all_done or (batch.state.terminal and not facts.left_undone):
        return facts
    upto = found[-1].stop - 1 if found else batch.items
    sent, sent_more = ports.parts.sent(batch.batch_id, upto=upto, limit=SENT)
    held, held_more = _held(ports, facts)
    edges = {edge for at in held for edge in (at, at + 1)}
    if not sent_more:
        edges |= {edge for row in sent for edge in (row.start, row.stop)}
    missing = missing_ranges(batch, _split(found, edges)) if edges else found
    return replace(
        facts,
        missing=with_keys(ports, batch, missing),
        sent=tuple(sent),
        sent_more=sent_more,
        held=held,
        held_more=held_more,
        retries=_retries(ports, batch, found),
        children=_children(ports, batch, found, facts.now),
        queues=tuple(ports.inspection.look(_queues(sent, found))),
    )


def _walk(ports: Ports, batch: Batch) -> Facts:
    """Walk down to the first missing items, and bound what is done by the words on the way."""
    now = ports.clock.now()
    if batch.mode is Mode.ESTIMATED:
        done = min(batch.acked, batch.items)
        return Facts(batch, now, done, done, missing_more=done < batch.items, begun=done > 0)
    if batch.items == 0 or batch.all_done:
        return Facts(batch, now, batch.items, batch.items, begun=bool(batch.items))
    tree, n = ports.tree, batch.items
    walk = Walk(ports, batch, budget=WORDS_HOLDING if batch.may_hold_more else WORDS, chunk=CHUNK)
    begun = False
    ordinals: list[int] = []
    for level, number, word, _ in walk:
        begun = begun or word != tree.full
        if level == 0:
            ordinals += tree.children(0, number, word, n)
    found = list(runs(ordinals))
    more = walk.stopped_at is not None or len(found) > RANGES
    if not ordinals and not more and batch.waited_for:
        # Only the batch does not know that all is done, or it has learnt that after its row was read.
        batch = ports.batches.read([batch.batch_id]).get(batch.batch_id, batch)
    if not walk.tally.whole or more:
        batch = replace(batch, failed=max(batch.failed, walk.tally.failed))
    elif batch.failed_more:
        batch = replace(batch, failed=walk.tally.failed, failed_more=False)
    missing = missing_ranges(batch, found[:RANGES])
    return Facts(batch, now, n - walk.pending, n - len(ordinals), missing, more, begun)


def _split(missing: Iterable[MissingRange], edges: Collection[int]) -> Iterator[tuple[int, int]]:
    """Cut ranges at some ordinals, so that each piece was sent as a whole or not, and is held or not."""
    for one in missing:
        inside = sorted(edge for edge in edges if one.start < edge < one.stop)
        yield from pairwise([one.start, *inside, one.stop])


def _held(ports: Ports, facts: Facts) -> tuple[dict[int, str], bool]:
    """Missing items that are held, with their reasons; and whether there may be others.

    The walk has shown which items are missing, so no word is read again.
    """
    batch = facts.batch
    if not batch.may_hold_more:
        return {}, False
    notes, cursor = ports.parts.failures(batch.batch_id, limit=HELD)
    missing = [note for note in notes if any(one.start <= note.ordinal < one.stop for one in facts.missing)]
    held = Held(ports).takings(batch, missing).free
    more = cursor is not None or (facts.missing_more and len(missing) < len(notes))
    return {note.ordinal: note.reason for note in held}, more


def _retries(ports: Ports, batch: Batch, missing: tuple[MissingRange, ...]) -> Mapping[int, RetryRow]:
    """Failed attempts at missing items, whose messages come again.

    Left out are items that are done by now, and those that a batch holds since the attempt.
    """
    if not missing:
        return {}
    rows = ports.parts.retries_from(batch.batch_id, missing[0].start, limit=RETRIES)
    tried = {row.ordinal: row for row in rows if any(one.start <= row.ordinal < one.stop for one in missing)}
    if not batch.may_hold_more:
        return tried
    failed = ports.parts.notes(batch.batch_id, tried)
    return {at: row for at, row in tried.items() if at not in failed or failed[at].failed_at < row.at}


def _children(ports: Ports, batch: Batch, missing: tuple[MissingRange, ...], now: int) -> Mapping[int, Batch]:
    """Live batches that do the work of the first missing items."""
    first = [ordinal for one in missing for ordinal in range(one.start, min(one.stop, one.start + CHILDREN))]
    noted = {n: ports.batches.child_of(ItemPlace(batch.batch_id, n)) for n in first[:CHILDREN]}
    found = {ordinal: child for ordinal, child in noted.items() if child is not None}
    rows = ports.batches.read(found.values())
    live = {child: row for child, row in rows.items() if not (row.state.terminal or row.gone(now))}
    return {ordinal: live[child] for ordinal, child in found.items() if child in live}


def _queues(sent: Iterable[SentRow], missing: tuple[MissingRange, ...]) -> list[str]:
    """The queues to which missing items were sent, and then the others, as many as one diagnosis looks at."""
    rows = list(sent)
    near = [row for row in rows if any(row.start < one.stop and one.start < row.stop for one in missing)]
    return list(dict.fromkeys(row.queue for row in near or rows))[:QUEUES]


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
        resend = "Send them as a new batch."  # the items of a batch that retries one are not rows of a file
        if self.batch.retry_of is None:
            resend = (
                f"`fanin resend {batch} FILE --queue {queue or 'URL'}` sends missing items again, from the"
                " file that `fanin fanout` sent."
            )
        return (
            f"{resend} Or fail them: `fanin fail --range RANGE`; `fanin missing {batch}` lists their ranges."
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
    queues = {row.queue for row in facts.covering(found)}
    for report in facts.queues:
        if report.figures is None or report.queue not in queues:
            continue
        if report.figures.visible or report.figures.delayed:
            return Known.WAITING, f"probably in the queue {report.name}"
        if report.figures.in_flight:
            return Known.IN_FLIGHT, f"probably received from the queue {report.name} and not finished"
        if report.dead:
            return Known.UNKNOWN, f"perhaps in the dead-letter queue of {report.name}"
    return Known.UNKNOWN, "no queue that could be looked at shows a message for them"
