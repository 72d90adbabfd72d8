"""Delivering the work of buffers: a message counts only while its item is pending; all others are void.

A receipt is opaque text for an item and a delivery of its message.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from fanin import names
from fanin.app.buffers.records import BufferRecords
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.batches import ItemPlace
from fanin.app.ports.queues import Received
from fanin.domain import ids
from fanin.domain.batch import Batch, Kind
from fanin.domain.buffer import Buffer, Work
from fanin.errors import GONE, InvalidItemId, InvalidRequest

_LONGEST_RECEIPT: Final = 4096


class WorkReceipt(NamedTuple):
    """A receipt, decoded.

    Attributes:
        batch_id: batch of the item.
        item: its id.
        handle: receipt handle of the queue, which removes the message.
    """

    batch_id: int
    item: str
    handle: str


def write_receipt(item: str, handle: str) -> str:
    """Make a receipt."""
    return base64.urlsafe_b64encode(json.dumps([item, handle]).encode()).decode().rstrip("=")


def read_receipt(token: str) -> WorkReceipt:
    """Read a receipt. Whether this service issued its item is not checked.

    Raises:
        InvalidRequest: the text is not a receipt.
    """
    with suppress(ValueError, TypeError, RecursionError):  # the last from a text of nested brackets
        if len(token) <= _LONGEST_RECEIPT:
            text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            item, handle = json.loads(text)
            if isinstance(item, str) and isinstance(handle, str) and (at := ordinal(item)):
                return WorkReceipt(at.batch_id, item, handle)
    raise InvalidRequest(
        f"receipt {token[:32]!r} is not one that take returned, and nothing was done;"
        " send receipts exactly as you got them"
    )


def ordinal(item: str) -> ItemPlace | None:
    """The place of an item; None if the text is not an item id."""
    with suppress(InvalidItemId):
        block, number = ids.parse_item(item)
        return ItemPlace(block.batch_id, number)
    return None


SIFT_MS: Final = 2_000
"""Milliseconds by which a receive may outlast its wait, while it meets nothing but messages without work."""


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
        """Receive work, waiting ``wait`` seconds in all; messages without work do not count."""
        queues, now = self._ports.queues, self._ports.clock.now
        until = now() + wait * 1000
        left = wait
        while received := queues.receive(
            buffer.queue, most=most, wait=left, visibility_timeout=visibility_timeout
        ):
            work, void = self._sift(buffer, received)
            if void:
                queues.remove(buffer.queue, void)
            if work or now() > until + SIFT_MS:
                return work
            left = max(0, (until - now()) // 1000)
        return []

    def _sift(self, buffer: Buffer, received: Sequence[Received]) -> tuple[list[Work], list[str]]:
        """Split messages into work, and the handles of void messages.

        A put that was repeated may have sent the message of an item twice. Of two that come together, one is
        void: the other comes again if its work is not done.

        All others are left in the queue for those who sent them: messages without an item id, and messages
        whose items are not known to have been this buffer's.
        """
        found = [(message, message.attributes.get(names.ITEM_ATTRIBUTE, "")) for message in received]
        ours = [(message, item, at) for message, item in found if (at := ordinal(item))]
        if any(at.batch_id != buffer.batch_id for _, _, at in ours):
            buffer = self._records.refresh(buffer.name).buffer
        batches: dict[int, Batch] = {}
        for batch_id in {at.batch_id for _, _, at in ours}:
            with suppress(*GONE):
                batches |= self._ledger.refresh([batch_id])
        now, work, void = self._ports.clock.now(), [], []
        delivered: set[ItemPlace] = set()
        for message, item, at in ours:
            if at in delivered:
                void.append(message.handle)
            elif self._is_pending(buffer, at, batches):
                delivered.add(at)
                waited = max(0, now - message.sent_at)
                work.append(Work(message.body, write_receipt(item, message.handle), waited))
            elif at.batch_id == buffer.batch_id or _was_its(buffer, batches.get(at.batch_id)):
                void.append(message.handle)
        return work, void

    def _is_pending(self, buffer: Buffer, item: ItemPlace, batches: Mapping[int, Batch]) -> bool:
        batch = batches.get(item.batch_id)
        if item.batch_id == buffer.batch_id and batch is not None and not batch.state.terminal:
            with suppress(*GONE):
                return bool(self._ledger.pending(item.batch_id, item.ordinal, item.ordinal + 1))
        return False


def _was_its(buffer: Buffer, batch: Batch | None) -> bool:
    """Whether a batch was an earlier one of a buffer of this name, and has ended."""
    if batch is None or batch.kind is not Kind.BUFFER:
        return False
    return batch.user_key == buffer.name and batch.state.terminal
