"""Delivering the work of buffers: a message counts only while its item is pending; all others are void."""

from __future__ import annotations

from collections.abc import Sequence

from fanin import names
from fanin.app.buffers import receipts
from fanin.app.buffers.records import BufferRecords
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.queues import Received
from fanin.domain.buffer import Buffer, Work
from fanin.errors import BatchGone, BatchNotFound


class Deliveries:
    """Receives the messages of buffers, and removes void ones.

    Args:
        ports: the queues and the clock.
        ledger: tells which items are pending.
        records: the buffers' records.
    """

    def __init__(self, ports: Ports, ledger: LedgerService, records: BufferRecords) -> None:
        self._ports = ports
        self._ledger = ledger
        self._records = records

    def receive(self, buffer: Buffer, most: int, wait: int, visibility_timeout: int | None) -> list[Work]:
        """Receive work, waiting ``wait`` seconds for the first message; void messages do not count."""
        queues = self._ports.queues
        while received := queues.receive(
            buffer.queue, most=most, wait=wait, visibility_timeout=visibility_timeout
        ):
            work, void = self._sift(buffer, received)
            if void:
                queues.remove(buffer.queue, void)
            if work:
                return work
        return []

    def _sift(self, buffer: Buffer, received: Sequence[Received]) -> tuple[list[Work], list[str]]:
        """Split messages into work, and the handles of void messages.

        A message without an item id was not put by this service; it is left in the queue for its sender.
        """
        now, work, void = self._ports.clock.now(), [], []
        for message in received:
            item = message.attributes.get(names.ITEM_ATTRIBUTE, "")
            ordinal = receipts.ordinal(item)
            if ordinal is None:
                continue
            if ordinal.batch_id != buffer.batch_id:
                buffer = self._records.refresh(buffer.name).buffer
            if self._is_pending(buffer, ordinal):
                waited = max(0, now - message.sent_at)
                work.append(Work(message.body, receipts.write(item, message.handle), waited))
            else:
                void.append(message.handle)
        return work, void

    def _is_pending(self, buffer: Buffer, item: receipts.Ordinal) -> bool:
        if item.batch_id != buffer.batch_id:
            return False
        try:
            return bool(self._ledger.pending(item.batch_id, item.number, item.number + 1))
        except (BatchNotFound, BatchGone):
            return False
