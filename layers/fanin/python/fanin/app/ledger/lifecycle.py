"""The life of a batch: open, close, cancel, list, expire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from fanin.app.ledger.issued import check_issued
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.reservation import Reservation
from fanin.app.ledger.settle import Settler
from fanin.app.ports import Ports
from fanin.domain import ids, limits
from fanin.domain.batch import LIVE, RETENTION, Batch, Kind, Mode, OnDeadline, OpenBatch, State, touched
from fanin.domain.reports import Batches, Expired
from fanin.errors import BatchNotFound, InvalidRequest, Throttled
from fanin.wire.batches import OPEN_BATCH

TRIES = 5
"""Draws of a batch id; at 4,096 ids a millisecond more than a few mean that something is wrong."""

Before: TypeAlias = Callable[[Batch], Batch | None]
Draw: TypeAlias = Callable[[int], tuple[int, bytes]]


class BatchLife:
    """Moves batches through their states, by conditional writes that can be repeated.

    Args:
        ports: the stores.
        known: batch rows this process has seen.
        settler: completes what is done.
    """

    def __init__(self, ports: Ports, known: KnownBatches, settler: Settler) -> None:
        self._ports = ports
        self._known = known
        self._settler = settler

    def open(self, request: OpenBatch, before: Before | None = None, draw: Draw | None = None) -> Batch:
        """See ``Ledger.open``.

        Args:
            request: what to open.
            before: called with the row that is about to be written; gives the one that is, or None to draw
                another id.
            draw: gives a batch its id and salt at a time, ms.
        """
        template = self._template(request)
        for _ in range(TRIES):
            now = self._ports.clock.now()
            stamped = self._stamp(template, *(draw or self._draw)(now), now)
            batch = stamped if before is None else before(stamped)
            if batch is None:
                continue
            if batch.deadline is not None:
                # First the alarm, then the row: an alarm without a row does nothing, but a row without its
                # alarm would wait for the reaper.
                self._ports.timers.set(batch.batch_id, batch.deadline)
            if self._ports.batches.create(batch):
                return self._settler.finish(self._known.saw(batch))
        raise Throttled("no free batch id was found; try again", retry_after=1)

    def open_once(self, request: OpenBatch, key: str) -> Batch:
        """Open a batch, or find the one that this request opened before; see ``Ledger.open``."""
        lifetime = self._ports.defaults.lifetime if request.lifetime is None else request.lifetime
        reservation = Reservation(self._ports, key, OPEN_BATCH.encode(request), lifetime)
        row = reservation.batch()
        if row is None:
            row = self.open(request, draw=reservation.draw)
            reservation.keep()
        return self._known.present(self._known.saw(row))

    def close(self, batch_id: int) -> Batch:
        """See ``Ledger.close``."""
        seen = self._known.peek(batch_id)
        row, _ = self._ports.batches.close(
            batch_id,
            now=self._ports.clock.now(),
            activity=self._known.activity(replace(seen, state=State.CLOSED)) if seen else None,
        )
        row = self._settler.finish(self._there(batch_id, row))
        self._known.touch(row)
        return row

    def cancel(self, batch_id: int) -> Batch:
        """See ``Ledger.cancel``."""
        row, _ = self._ports.batches.end(batch_id, State.CANCELLED, now=self._ports.clock.now(), sources=LIVE)
        return self._there(batch_id, row)

    def list(self, state: State, *, cursor: str | None, limit: int) -> Batches:
        """See ``Ledger.list``."""
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        now = self._ports.clock.now()
        page = self._ports.batches.page(state, cursor=cursor, limit=limit)
        return Batches(tuple(batch for batch in page.batches if not batch.gone(now)), page.cursor)

    def expire(self, state: State, *, idle_since: int) -> Expired:
        """See ``Ledger.expire``."""
        now = self._ports.clock.now()
        batches = items = 0
        cursor: str | None = None
        while True:
            page = self._ports.batches.page(state, cursor=cursor)
            for batch in page.batches:
                if batch.active_until(now) > idle_since or batch.gone(now):
                    continue
                if self._expire(batch, now):
                    batches, items = batches + 1, items + batch.items
            cursor = page.cursor
            if cursor is None:
                return Expired(batches, items)

    def _expire(self, batch: Batch, now: int) -> bool:
        if batch.state.terminal:
            return self._ports.batches.expire(batch.batch_id, now=now)
        if batch.kind is Kind.BUFFER:
            return False  # a buffer that nobody uses for a while is no less wanted
        if self._settler.finish(batch).state.terminal:
            return False
        _, moved = self._ports.batches.end(
            batch.batch_id, State.ORPHANED, now=now, sources=(batch.state,), touched_at=batch.touched_at
        )
        return moved

    def _there(self, batch_id: int, row: Batch | None) -> Batch:
        if row is None:
            raise BatchNotFound(f"there is no batch {batch_id}; open one first, or check the id")
        return self._known.present(self._known.saw(row))

    def _template(self, request: OpenBatch) -> Batch:
        """Check a request and fill in the defaults.

        Raises:
            InvalidRequest: a value is out of its range, or contradicts another.
            InvalidItemId: the parent item was not issued by this service.
        """
        now, defaults = self._ports.clock.now(), self._ports.defaults
        lifetime = defaults.lifetime if request.lifetime is None else request.lifetime
        limits.whole("lifetime", lifetime, limits.MIN_LIFETIME, limits.MAX_LIFETIME)
        if request.idle_ttl is not None:
            limits.whole("idle_ttl", request.idle_ttl, limits.MIN_IDLE_TTL, limits.MAX_LIFETIME)
        limits.text("user_key", request.user_key, limits.MAX_USER_KEY)
        limits.at_most("metadata entries", request.metadata, limits.MAX_METADATA)
        for name, value in request.metadata.items():
            limits.text("a metadata key", name, limits.MAX_METADATA_KEY, least=1)
            limits.text(f"metadata {name!r}", value, limits.MAX_METADATA_VALUE)
        if request.deadline is not None and not now < request.deadline <= now + lifetime * 1000:
            raise InvalidRequest(
                f"the deadline must lie in the future, and within the batch's lifetime of {lifetime} seconds"
            )
        if request.limit is not None:
            limits.whole("limit", request.limit, 1, limits.MAX_LIMIT)
            if request.mode is Mode.ESTIMATED:
                raise InvalidRequest("an estimated batch cannot be bounded: leave out limit, or mode")
        if request.size is not None:
            limits.whole("size", request.size, 0, ids.MAX_COUNT)
        if request.parent_item is not None:
            self._check_parent(request.parent_item)
        return Batch(
            batch_id=0,
            salt=b"",
            created_at=0,
            touched_at=0,
            expires_at=lifetime + RETENTION,
            open_idle_ttl=request.idle_ttl or defaults.open_idle_ttl,
            closed_idle_ttl=request.idle_ttl or defaults.closed_idle_ttl,
            mode=Mode(request.mode),
            kind=Kind(request.kind),
            state=State.OPEN if request.size is None else State.CLOSED,
            items=request.size or 0,
            user_key=request.user_key,
            deadline=request.deadline,
            on_deadline=OnDeadline(request.on_deadline),
            limit=request.limit,
            parent_item=request.parent_item,
            metadata=dict(request.metadata),
        )

    def _draw(self, now: int) -> tuple[int, bytes]:
        return ids.batch_id(now, self._ports.random.bits(12)), self._ports.random.bytes(ids.SALT_BYTES)

    def _stamp(self, template: Batch, batch_id: int, salt: bytes, now: int) -> Batch:
        return replace(
            template,
            batch_id=batch_id,
            salt=salt,
            created_at=now,
            touched_at=touched(now, template.idle_ttl),
            closed_at=None if template.state is State.OPEN else now,
            expires_at=now // 1000 + template.expires_at,
        )

    def _check_parent(self, item: str) -> None:
        block, _ = ids.parse_item(item)
        parent = self._known.one(block.batch_id)
        check_issued(block, parent)
        if parent.mode is Mode.ESTIMATED:
            raise InvalidRequest(
                "the parent's batch is estimated, and could count this one twice; open it exact"
            )
        if parent.state.terminal:
            raise InvalidRequest(f"the parent's batch {parent.batch_id} has ended: it is {parent.state}")
