"""Bounded buffers: a batch that admits items only while there is room, and a queue that carries the work.

The bits decide everything. A slot is in use while its item is pending; a message whose item is not pending is
void, and is never handed out. So a slot can be freed at any time without exceeding the limit; what must not
happen is that the slot of accepted work is freed before the work is done.

A receipt is opaque text for an item and a delivery of its message.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Final, NamedTuple

from fanin import names
from fanin.app.buffers.puts import Puts
from fanin.app.buffers.records import GRAVE, BufferRecords, WorkEntry, check_name
from fanin.app.buffers.slots import TRIES, Slots, contended, renew_at
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.batches import ItemPlace
from fanin.app.ports.queues import Received
from fanin.domain import ids, limits
from fanin.domain.access import IdempotencyKey, Principal
from fanin.domain.batch import Batch, Kind, State
from fanin.domain.buffer import Accepted, Buffer, BufferPage, FailedWork, Level, Released, Work, check_put
from fanin.domain.marks import Failure, Mark
from fanin.errors import GONE, FaninError, InvalidItemId, InvalidRequest, Throttled

_NAMESPACE = "/buffer-queues"  # in the directory table; the names are URLs
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


@contextmanager
def claimed(ports: Ports, records: BufferRecords, queue: str, name: str) -> Iterator[None]:
    """Hold the claim on a queue, which no other buffer has, for a buffer that is being defined.

    Two buffers must not share a queue: each would receive, and so delay, the other's work. Once a buffer is
    defined, its record says which queue it has. A claim covers the time between looking at all records and
    writing one, in which nobody else may do the same for the queue. The claim of a process that died holds up
    other buffers until it expires, but not this one.

    Raises:
        InvalidRequest: another buffer has the queue.
        Throttled: another buffer is being defined with it.
    """
    version = _claim(ports, queue, name)
    try:
        if owner := records.owner(queue, other_than=name):
            raise InvalidRequest(
                f"queue {queue} belongs to buffer {owner}; give each buffer a queue of its own"
            )
        yield
    finally:
        ports.directory.delete(_NAMESPACE, queue, if_version=version)


def _claim(ports: Ports, queue: str, name: str) -> int:
    """Claim a queue, also over a claim of the same buffer.

    Returns:
        The version of the claim; whoever claims after that has another, and releases it.
    """
    version, value = 0, {"buffer": name}
    until = ports.clock.now() // 1000 + GRAVE
    for _ in range(TRIES):
        record, wrote = ports.directory.put(_NAMESPACE, queue, value, expires_at=until, if_version=version)
        version = 0 if record is None else record.version
        if wrote:
            return version
        if record is not None and record.value["buffer"] != name:
            raise Throttled(
                f"buffer {record.value['buffer']} is being defined with queue {queue};"
                " try again, or give each buffer a queue of its own",
                retry_after=1,
            )
    raise contended(name)


class BufferService:
    """Implements ``fanin.app.api.Buffers`` over the ledger.

    Args:
        ledger: keeps the batches; its ports are used too.
    """

    def __init__(self, ledger: LedgerService) -> None:
        self._ports = ports = ledger.ports
        self._ledger = ledger
        self._records = BufferRecords(ports)
        self._slots = Slots(ports, ledger, self._records)
        self._puts = Puts(ledger, self._records, self._slots)

    def define(self, name: str, limit: int, *, queue: str | None = None) -> Buffer:
        check_name(name)
        limits.whole("limit", limit, 1, limits.MAX_LIMIT)
        url = None if queue is None else self._ports.channels.resolve(queue)
        for _ in range(TRIES):
            entry = self._records.read(name)
            if entry is None or entry.buried:
                made = self._make(name, limit, url, over=0 if entry is None else entry.version)
                if made is not None:
                    return made.buffer
                continue
            if url not in {None, entry.buffer.queue}:
                raise InvalidRequest(
                    f"buffer {name} has another queue, {entry.buffer.queue};"
                    " name that one, or delete the buffer first"
                )
            wrote = False
            if entry.buffer.limit != limit and not entry.going:
                # Whoever puts next closes the batch of the old limit, if this call dies before it does.
                due = self._ports.clock.now()
                resized = entry._replace(buffer=replace(entry.buffer, limit=limit), renew_at=due)
                entry, wrote = self._records.write(resized)
            if entry is not None and not entry.going and (wrote or entry.buffer.limit == limit):
                self._slots.follow(entry)
                return entry.buffer
        raise contended(name)

    def delete(self, name: str) -> None:
        born: int | None = None
        for _ in range(TRIES):
            entry = self._records.read(name)
            if entry is None or entry.buried or born not in {None, entry.born}:
                return  # what is there now, if anything, was defined after this call began
            born, wrote = entry.born, entry.going
            if not wrote:
                entry, wrote = self._records.write(entry._replace(going=True))
            if wrote and entry is not None:
                self._end(entry)
                return
        raise contended(name)

    def status(self, name: str) -> Level:
        entry = self._records.refresh(name)
        batch, pending = self._slots.pending(entry.buffer)
        taken = min(pending, self._ports.queues.state(entry.buffer.queue).in_flight)
        count = (pending - taken) or -self._records.waiting(name)
        draining = batch is None or batch.state is not State.OPEN
        return Level(entry.buffer, count=count, pending=pending, taken=taken, draining=draining)

    def put(
        self, name: str, payloads: Sequence[str], *, key: str | None = None, caller: Principal | None = None
    ) -> Accepted:
        check_put(payloads)
        if key is None:
            return self._puts.put(name, payloads)
        return self._puts.put_once(name, payloads, IdempotencyKey.of(key, caller))

    def take(
        self, name: str, *, most: int = 1, wait: int = 20, visibility_timeout: int | None = None
    ) -> list[Work]:
        limits.whole("most", most, 1, limits.MAX_WORK)
        limits.whole("wait", wait, 0, limits.MAX_WAIT)
        if visibility_timeout is not None:
            limits.whole("visibility_timeout", visibility_timeout, 1, limits.MAX_VISIBILITY_TIMEOUT)
        buffer = self._records.fresh(name).buffer
        until = self._ports.clock.now() + wait * 1000
        if (work := self._receive(buffer, most, min(wait, 1), visibility_timeout)) or not wait:
            return work
        waiter = self._ports.random.bytes(8).hex()
        self._records.came(name, waiter, until)
        try:
            left = max(1, (until - self._ports.clock.now()) // 1000)
            return self._receive(buffer, most, left, visibility_timeout)
        finally:
            self._records.left(name, waiter)

    def poll(
        self,
        name: str,
        *,
        most: int = 1,
        visibility_timeout: int | None = None,
        waiter: str | None = None,
        waits: int = 0,
    ) -> list[Work]:
        limits.whole("waits", waits, 0, limits.MAX_WAIT)
        work = self.take(name, most=most, wait=0, visibility_timeout=visibility_timeout)
        if waiter is not None and waits and not work:
            self._records.came(name, waiter, self._ports.clock.now() + waits * 1000)
        elif waiter is not None and work and not waits:
            self._records.left(name, waiter)
        return work

    def _receive(self, buffer: Buffer, most: int, wait: int, visibility_timeout: int | None) -> list[Work]:
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

    def done(self, name: str, tokens: Sequence[str], *, failures: Sequence[FailedWork] = ()) -> Released:
        said = [(token, None) for token in tokens] + [(one.receipt, one.reason) for one in failures]
        limits.at_most("receipts", said, limits.MAX_RECEIPTS)
        entry = self._records.fresh(name)
        read = [(read_receipt(receipt), why) for receipt, why in said]
        if any(one.batch_id != entry.buffer.batch_id for one, _ in read):
            entry = self._records.refresh(name)
        ours = [(one, why) for one, why in read if one.batch_id == entry.buffer.batch_id]
        done = self._mark([one.item if why is None else Failure(one.item, why) for one, why in ours])
        self._ports.queues.remove(entry.buffer.queue, [one.handle for one, _ in ours])
        return Released(done, len(read) - done)

    def list(self, *, cursor: str | None = None, limit: int = 100) -> BufferPage:
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        return self._records.page(cursor, min(limit, limits.MAX_ROWS))

    def _mark(self, marks: Sequence[Mark]) -> int:
        """Mark items of one batch; none are marked if it is gone."""
        with suppress(*GONE):
            return sum(receipt.first for receipt in self._ledger.mark(marks).whole())
        return 0

    def _make(self, name: str, limit: int, url: str | None, *, over: int) -> WorkEntry | None:
        """Define a buffer over the version of what was read; None if another process was faster.

        Without the URL of a queue it gets a new one, which nobody else has: so it is deleted then.
        """
        with nullcontext() if url is None else claimed(self._ports, self._records, url, name):
            batch = self._slots.open(name, limit)
            try:
                queue = self._ports.queues.create(name, batch.batch_id) if url is None else url
                retention = self._ports.queues.state(queue).retention
            except FaninError:
                self._slots.cancel(batch.batch_id)
                raise
            buffer = Buffer(name, limit, queue, owned=url is None, batch_id=batch.batch_id)
            entry = WorkEntry(buffer, renew_at(batch), retention, born=batch.batch_id, version=over)
            made = self._slots.install(entry)
            if made is None and url is None:
                self._ports.queues.delete(queue)
            return made

    def _end(self, entry: WorkEntry) -> None:
        """Finish the deletion of a buffer whose record says that it is going."""
        name = entry.buffer.name
        self._slots.cancel(entry.buffer.batch_id)
        if self._records.read(name) != entry:
            return  # others have finished, and the queue may be that of a new buffer of the same name
        if entry.buffer.owned:
            self._ports.queues.delete(entry.buffer.queue)
        self._records.bury(entry)


def _was_its(buffer: Buffer, batch: Batch | None) -> bool:
    """Whether a batch was an earlier one of a buffer of this name, and has ended."""
    if batch is None or batch.kind is not Kind.BUFFER:
        return False
    return batch.user_key == buffer.name and batch.state.terminal
