"""Telling that a batch has stalled: once for each stall, with the reason that is most likely."""

from __future__ import annotations

from fanin import names
from fanin.app.diagnosis.service import diagnose
from fanin.app.ports import Ports
from fanin.app.ports.events import Event
from fanin.domain.batch import Batch
from fanin.domain.diagnosis import Severity
from fanin.wire.batches import BATCH
from fanin.wire.items import FINDING
from fanin.wire.json_types import encode_time


class Stalls:
    """Decides whether a batch without activity has stalled; an ``OnStalled``.

    Args:
        ports: the stores and queues.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def event(self, batch: Batch) -> Event | None:
        """The event that tells of a stall; None if nothing is wrong, such as while consumers work on it.

        The event has the same id however often the stall is told, since a stall begins where activity ended.

        Args:
            batch: a live batch without activity for its ``stall_after``.
        """
        diagnosis = diagnose(self._ports, batch)
        first = diagnosis.findings[0]
        if first.severity is Severity.INFO:
            return None
        detail = {
            **BATCH.encode(diagnosis.batch),
            "done_min": diagnosis.done_min,
            "done_max": diagnosis.done_max,
            "quiet_since": encode_time(batch.active_until(self._ports.clock.now())),
            "finding": FINDING.encode(first),
        }
        return Event(
            id=f"{self._ports.defaults.event_prefix}{batch.batch_id}.stalled.{batch.touched_at}",
            detail_type=names.BATCH_STALLED,
            detail=detail,
            time=self._ports.clock.now(),
        )
