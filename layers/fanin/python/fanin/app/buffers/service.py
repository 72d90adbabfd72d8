"""Bounded buffers: a batch that admits items only while there is room, and a queue that carries the work.

The bits decide everything. A slot is in use while its item is pending; a message whose item is not pending is
void, and is never handed out. So a slot can be freed at any time without exceeding the limit; what must not
happen is that the slot of accepted work is freed before the work is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fanin import names
from fanin.app.buffers import receipts
from fanin.app.buffers.deliveries import Deliveries
from fanin.app.buffers.records import NAMESPACE, BufferRecords, Entry, check_name, entry_of
from fanin.app.buffers.slots import TRIES, Slots, contended, renew_at
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.channels import Outgoing
from fanin.domain import ids, limits
from fanin.domain.acks import Failure
from fanin.domain.batch import State
from fanin.domain.buffer import Accepted, Buffer, BufferPage, Level, Outcome, Released, Work
from fanin.errors import ChannelRefused, FaninError, InvalidRequest, Throttled

SEND_MS: Final = 300_000
"""Milliseconds that a put may take from its slot to its message; a slower one is not accepted."""


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
        self._deliveries = Deliveries(ports, ledger, self._records)

    def define(self, name: str, limit: int, *, queue: str | None = None) -> Buffer:
        check_name(name)
        limits.whole("limit", limit, 1, limits.MAX_LIMIT)
        url = None if queue is None else self._ports.channels.resolve(queue)
        for _ in range(TRIES):
            entry = self._records.read(name)
            if entry is None:
                entry = self._make(name, limit, url)
            elif url not in {None, entry.buffer.queue}:
                raise InvalidRequest(
                    f"buffer {name} has another queue, {entry.buffer.queue};"
                    " name that one, or delete the buffer first"
                )
            elif entry.buffer.limit != limit:
                entry = self._records.write(entry._replace(buffer=replace(entry.buffer, limit=limit)))
            if entry is not None and not entry.going:
                self._slots.follow(entry)
                return entry.buffer
        raise contended(name)

    def delete(self, name: str) -> None:
        for _ in range(TRIES):
            entry = self._records.read(name)
            if entry is None:
                return
            going = entry if entry.going else self._records.write(entry._replace(going=True))
            if going is None:
                continue
            self._slots.cancel(going.buffer.batch_id)
            if going.buffer.owned:
                self._ports.queues.delete(going.buffer.queue)
            self._records.delete(going)
            return
        raise contended(name)

    def status(self, name: str) -> Level:
        entry = self._records.refresh(name)
        batch, pending = self._slots.pending(entry.buffer)
        taken = min(pending, self._ports.queues.state(entry.buffer.queue).in_flight)
        waiting = pending - taken
        return Level(
            entry.buffer,
            count=waiting or -self._waiting(name),
            pending=pending,
            taken=taken,
            draining=batch is None or batch.state is not State.OPEN,
        )

    def put(self, name: str, payloads: Sequence[str], *, key: str | None = None) -> Accepted:
        _check(payloads)
        started = self._ports.clock.now()
        entry, group = self._slots.admit(self._records.fresh(name), len(payloads), key)
        items = [f"{group.prefix}:{index}" for index in range(group.upto)]
        outcome = Outcome.READY if self._waiting(name) else Outcome.WAITING
        try:
            self._send(entry.buffer.queue, payloads, items, started)
        except FaninError:
            if key is None:  # with a key, a repeat gets the same items, which must still be pending
                self._ledger.fail([Failure(item, "its message was not sent") for item in items])
            raise
        self._slots.mark(entry, ids.parse_prefix(group.prefix).stop)
        return Accepted(outcome, tuple(items))

    def take(
        self, name: str, *, most: int = 1, wait: int = 20, visibility_timeout: int | None = None
    ) -> list[Work]:
        limits.whole("most", most, 1, limits.MAX_WORK)
        limits.whole("wait", wait, 0, limits.MAX_WAIT)
        if visibility_timeout is not None:
            limits.whole("visibility_timeout", visibility_timeout, 1, limits.MAX_VISIBILITY_TIMEOUT)
        buffer = self._records.fresh(name).buffer
        until = self._ports.clock.now() + wait * 1000
        if (work := self._deliveries.receive(buffer, most, min(wait, 1), visibility_timeout)) or not wait:
            return work
        waiter, waiting = self._ports.random.bytes(8).hex(), f"{NAMESPACE}/{name}"
        self._ports.directory.put(waiting, waiter, {}, expires_at=until // 1000 + 5)
        try:
            left = max(1, (until - self._ports.clock.now()) // 1000)
            return self._deliveries.receive(buffer, most, left, visibility_timeout)
        finally:
            self._ports.directory.delete(waiting, waiter)

    def done(self, name: str, tokens: Sequence[str]) -> Released:
        limits.at_most("receipts", tokens, limits.MAX_RECEIPTS)
        entry = self._records.fresh(name)
        read = [receipts.read(token) for token in tokens]
        if any(item.batch_id != entry.buffer.batch_id for item in read):
            entry = self._records.refresh(name)
        batch_id = entry.buffer.batch_id
        items = [item.item for item in read if item.batch_id == batch_id]
        done = sum(answer.first for answer in self._ledger.ack(items)) if items else 0
        self._ports.queues.remove(entry.buffer.queue, [item.handle for item in read])
        return Released(done, len(read) - done)

    def list(self, *, cursor: str | None = None, limit: int = 100) -> BufferPage:
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        page = self._ports.directory.page(NAMESPACE, cursor=cursor, limit=limit)
        entries = map(entry_of, page.records)
        return BufferPage(tuple(entry.buffer for entry in entries if not entry.going), page.cursor)

    def _send(self, queue: str, payloads: Sequence[str], items: Sequence[str], started: int) -> None:
        messages = [
            Outgoing(queue, payload, {names.ITEM_ATTRIBUTE: item})
            for payload, item in zip(payloads, items, strict=True)
        ]
        refused = self._ports.channels.send(messages)
        if reason := next(filter(None, refused), None):
            raise ChannelRefused(f"the queue of the buffer refuses the work: {reason}")
        if self._ports.clock.now() - started > SEND_MS:
            raise Throttled("putting the work took too long; put it again", retry_after=1)

    def _waiting(self, name: str) -> int:
        """How many consumers are waiting for work, up to a hundred."""
        return len(self._ports.directory.page(f"{NAMESPACE}/{name}").records)

    def _make(self, name: str, limit: int, url: str | None) -> Entry | None:
        queue = url or self._ports.queues.create(name)
        batch = self._slots.open(name, limit)
        entry = self._records.write(
            Entry(
                Buffer(name, limit, queue, owned=url is None, batch_id=batch.batch_id),
                renew_at(batch),
                self._ports.queues.state(queue).retention,
            )
        )
        if entry is None:
            self._slots.cancel(batch.batch_id)
        return entry


def _check(payloads: Sequence[str]) -> None:
    limits.at_most("payloads", payloads, limits.MAX_WORK)
    if not payloads:
        raise InvalidRequest("no payloads were given; put 1 to 10")
    for payload in payloads:
        limits.text("a payload", payload, limits.MAX_PAYLOAD, least=1)
    limits.at_most("bytes of payloads", "".join(payloads).encode(), limits.MAX_PAYLOAD)
