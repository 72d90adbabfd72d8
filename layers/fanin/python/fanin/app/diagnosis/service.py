"""Diagnostics: why a batch is not finished, the notes that help to say it, and what a person should look at.

The listing of that has the most urgent first, for console, command line and library. The index has an entry
for each batch with a flag and none for others, so the listing reads what is wrong and not what there is. A
flag may be older than its batch, so each row is judged as it is now.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from fanin import names
from fanin.app.attention import NESTED, trouble_of
from fanin.app.diagnosis.batch_findings import batch_findings
from fanin.app.diagnosis.gathering import gather, known_ranges
from fanin.app.diagnosis.queue_findings import queue_findings
from fanin.app.ledger.failed import Failed, Held
from fanin.app.ledger.known_batches import KnownBatches, check_issued
from fanin.app.ports import Ports
from fanin.app.ports.events import Event
from fanin.app.ports.parts import RetryRow, SentRow
from fanin.app.ports.words import WordKey
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Mode, State, Trouble
from fanin.domain.diagnosis import Diagnosis, Retry, SentItems, Severity, most_likely_first
from fanin.domain.limits import counted
from fanin.domain.reports import Attention, Troubled
from fanin.errors import InvalidRequest
from fanin.wire.batches import BATCH
from fanin.wire.items import FINDING
from fanin.wire.json_types import encode_time

_HELD: Final = 20
"""Rows that are read to count the held items of a batch."""
_EACH: Final = 12 + _HELD + 3 * NESTED
"""Rows that are read of a batch at most: index, row, root, targets, a note, redrives, held items; and of
items that failed with nested batches a note of each, one of its child, and the row of that. A live batch has
fewer, with a word of each level instead of what is told of an end."""


def diagnose(ports: Ports, batch: Batch) -> Diagnosis:
    """Say why a batch is not finished, whose row was read just now."""
    facts = gather(ports, batch)
    findings = most_likely_first(batch_findings(facts, queue_findings(facts)))
    known = known_ranges(facts)
    return Diagnosis(facts.batch, facts.done_min, facts.done_max, findings, known, facts.missing_more)


class DiagnosisService:
    """Implements ``fanin.app.api.Diagnostics`` over ports.

    Args:
        ports: the stores and queues.
        rows: how many rows a listing reads at most.
    """

    def __init__(self, ports: Ports, *, rows: int = limits.MAX_ROWS) -> None:
        self._ports = ports
        self._rows = rows
        self._known = KnownBatches(ports.batches, ports.clock)

    def why(self, batch_id: int) -> Diagnosis:
        return diagnose(self._ports, self._known.current(batch_id))

    def attention(self, *, cursor: str | None = None, limit: int = 100) -> Attention:
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        most = min(limit, max(1, self._rows // _EACH))
        page = self._ports.batches.page_of_flagged(cursor=cursor, limit=most)
        now = self._ports.clock.now()
        there = [batch for batch in page.batches if not batch.gone(now)]
        listed = Failed(self._ports).listed(there)
        seen = [Held(self._ports).counted(batch, budget=_HELD) for batch in listed]
        found = [one for batch in seen for one in _troubled(self._ports, batch)]
        order = list(Trouble)
        found.sort(key=lambda one: (one.batch.state.terminal, order.index(one.trouble), -one.batch.batch_id))
        if cursor is None and page.cursor is None:
            return Attention(tuple(found), Counter(one.trouble.value for one in found))
        counts = self._ports.batches.count_flagged()
        numbers = {trouble.value: count for trouble, (count, _) in counts.items()}
        at_least = tuple(trouble.value for trouble, (_, more) in counts.items() if more)
        return Attention(tuple(found), numbers, page.cursor, at_least)

    def note_sent(self, batch_id: int, sent: SentItems) -> None:
        limits.text("queue", sent.queue, limits.MAX_CHANNEL, least=1)
        limits.whole("from", sent.start, 0, ids.MAX_ITEMS)
        limits.whole("to", sent.stop, sent.start + 1, ids.MAX_ITEMS)
        batch = self._known.reaching({batch_id: sent.stop})[batch_id]
        if sent.stop > batch.items:
            raise InvalidRequest(
                f"batch {batch_id} has {batch.items} items, so none up to {sent.stop} can have been sent;"
                " note only items that were added"
            )
        if batch.state.terminal:
            return
        now = self._ports.clock.now()
        row = SentRow(sent.queue, sent.start, sent.stop, now, now)
        self._ports.parts.put_sent(batch_id, row, expires_at=batch.expires_at)

    def note_retries(self, retries: Sequence[Retry]) -> None:
        limits.at_most("failed attempts", retries, limits.MAX_NOTES)
        now = self._ports.clock.now()
        parsed = [(*ids.parse_item(retry.item), retry) for retry in retries]
        rows: dict[int, list[RetryRow]] = {}
        stops: dict[int, int] = {}
        for block, ordinal, retry in parsed:
            limits.whole("attempt", retry.attempt, 1, limits.MAX_ATTEMPTS)
            limits.text("error", retry.error, limits.MAX_REASON)
            limits.text("queue", retry.queue, limits.MAX_CHANNEL)
            row = RetryRow(ordinal, retry.attempt, retry.error, retry.queue, now)
            rows.setdefault(block.batch_id, []).append(row)
            stops[block.batch_id] = max(block.stop, stops.get(block.batch_id, 0))
        batches = self._known.reaching(stops)
        for block in {block for block, _, _ in parsed}:
            check_issued(block, batches[block.batch_id])
        for batch_id, batch in batches.items():
            if not batch.state.terminal:
                self._ports.parts.put_retries(batch_id, rows[batch_id], expires_at=batch.expires_at)


def stall_event(ports: Ports, batch: Batch) -> Event | None:
    """The event that tells of a stall; None if nothing is wrong, such as while consumers work on it.

    The event has the same id however often the stall is told, since a stall begins where activity ended.

    Args:
        ports: the stores and queues.
        batch: a live batch without activity for its ``stall_after``.
    """
    diagnosis = diagnose(ports, batch)
    first = diagnosis.findings[0]
    if first.severity is Severity.INFO:
        return None
    detail = {
        **BATCH.encode(diagnosis.batch),
        "done_min": diagnosis.done_min,
        "done_max": diagnosis.done_max,
        "quiet_since": encode_time(batch.active_until(ports.clock.now())),
        "finding": FINDING.encode(first),
    }
    name = f"{ports.defaults.event_prefix}{batch.batch_id}.stalled.{batch.touched_at}"
    return Event(name, names.BATCH_STALLED, detail, ports.clock.now())


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
