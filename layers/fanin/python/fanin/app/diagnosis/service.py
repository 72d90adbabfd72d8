"""Diagnostics: why a batch is not finished, and the notes that help to say it."""

from collections.abc import Sequence

from fanin import names
from fanin.app.diagnosis.attention import attention
from fanin.app.diagnosis.batch_findings import batch_findings
from fanin.app.diagnosis.gathering import gather, known_ranges
from fanin.app.diagnosis.queue_findings import queue_findings
from fanin.app.ledger.known_batches import KnownBatches, check_issued
from fanin.app.ports import Ports
from fanin.app.ports.events import Event
from fanin.app.ports.parts import RetryRow, SentRow
from fanin.domain import ids, limits
from fanin.domain.batch import Batch
from fanin.domain.diagnosis import Diagnosis, Retry, SentItems, Severity, most_likely_first
from fanin.domain.reports import Attention
from fanin.errors import InvalidRequest
from fanin.wire.batches import BATCH
from fanin.wire.items import FINDING
from fanin.wire.json_types import encode_time


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
        return attention(self._ports, cursor=cursor, limit=limit, rows=self._rows)

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
