"""The life of an open batch: close, cancel, list, expire; ``opening`` is where it begins."""

from dataclasses import replace
from typing import Any, Final

from fanin.app.ledger.failed import READS_OF_LIST
from fanin.app.ledger.known_batches import not_found
from fanin.app.ledger.opening import check_limits, checked_milestones
from fanin.app.ledger.watching import Watching
from fanin.app.ports.batches import BatchRows
from fanin.domain import limits
from fanin.domain.batch import LIVE, RETENTION, Batch, ChangeLimits, CloseWhen, Kind, Mode, State
from fanin.domain.reports import BatchCounts, Batches, Expired
from fanin.errors import BatchGone, InvalidRequest

_EACH_LISTED: Final = 3
"""Rows that are read for a batch of a listing: its entry in the index, its row, and the root of its tree."""
_LOOKED: Final = 16
"""Rows that an expiry reads of the tree of a closed batch.

They lead to a missing item, unless much must be repaired first: then the batch is left for another call.
"""


class Lifecycle(Watching):
    """Moves batches through their states, by conditional writes that can be repeated."""

    def close(self, batch_id: int, *, when: CloseWhen = CloseWhen.NOW) -> Batch:
        # The same write says when the reaper looks, so that a crash after it is found: that takes the row.
        seen, now = self._known.row(batch_id), self.ports.clock.now()
        if when is CloseWhen.DRAINED:
            _check_drains(seen)
            write, after = self.ports.batches.drain, replace(seen, draining_at=now)
        else:
            write, after = self.ports.batches.close, replace(seen, state=State.CLOSED)
        row, _ = write(batch_id, now=now, activity=self._known.activity(after))
        row = self.finish(self._there(batch_id, row))
        self._known.touch(row)
        return self.look(row)

    def cancel(self, batch_id: int) -> Batch:
        row, _ = self.ports.batches.end(batch_id, State.CANCELLED, now=self.ports.clock.now(), sources=LIVE)
        return self._there(batch_id, row)

    def change(self, batch_id: int, change: ChangeLimits) -> Batch:
        """Change limits of a live batch: the row first, then the alarm, which does nothing too early."""
        batch, now = self._known.current(batch_id), self.ports.clock.now()
        if not change.given:
            raise InvalidRequest(
                "nothing changes; give a deadline, tolerated_failures, stall_after, or milestones"
            )
        kind, mode = batch.kind, batch.mode
        if kind is not Kind.BATCH:
            raise InvalidRequest(f"limits are changed of plain batches, and {batch_id} carries a {kind}")
        check_limits(change, kind, mode, now=now, until=(batch.expires_at - RETENTION) * 1000)
        if change.deadline is not None:
            self.ports.timers.check()
        if change.milestones is not None:
            change = replace(change, milestones=checked_milestones(change.milestones, kind, mode))
        failing = None if change.tolerated_failures is None else self._failures(batch)[0]
        given: dict[str, Any] = dict(change.given)
        due_at = replace(batch, **given).look_at(now)
        row, moved = self.ports.batches.change(batch_id, change, failing=failing, due_at=due_at)
        batch = self._there(batch_id, row)
        if not moved:
            raise InvalidRequest(f"batch {batch_id} is {batch.state}; only limits of a live batch can change")
        if change.deadline is not None:
            self.ports.timers.set(batch_id, change.deadline)
        return self.look(batch)

    def list(
        self,
        state: State | None = None,
        *,
        user_key: str | None = None,
        parent: int | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Batches:
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        now = self.ports.clock.now()
        most = max(1, (self.rows - READS_OF_LIST) // _EACH_LISTED)
        page = self._page(state, user_key, parent, cursor, min(limit, most))
        there = [batch for batch in page.batches if not batch.gone(now) and state in {None, batch.state}]
        return Batches(self._held.listed(self._failed.listed(there)), page.cursor)

    def _page(
        self, state: State | None, user_key: str | None, parent: int | None, cursor: str | None, limit: int
    ) -> BatchRows:
        if parent is not None:
            if user_key is not None:
                raise InvalidRequest("a listing has a parent or a user_key, not both; leave one out")
            self._known.current(parent)
            return self.ports.batches.page_of_parent(parent, cursor=cursor, limit=limit)
        if user_key is not None:
            limits.text("user_key", user_key, limits.MAX_USER_KEY, least=1)
            return self.ports.batches.page_of_user_key(user_key, cursor=cursor, limit=limit)
        if state is not None:
            return self.ports.batches.page(state, cursor=cursor, limit=limit)
        raise InvalidRequest(
            f"nothing says which batches to list; give a state ({', '.join(State)}), a user_key, or a parent"
        )

    def counts(self) -> BatchCounts:
        found = {state: self.ports.batches.count_in(state) for state in State}
        states = {state.value: count for state, (count, _) in found.items()}
        return BatchCounts(states, tuple(state.value for state, (_, more) in found.items() if more))

    def expire(self, state: State, *, idle_since: int, cursor: str | None = None) -> Expired:
        now = self.ports.clock.now()
        each = 2 + (_LOOKED if state is State.CLOSED else 0)
        limit = max(1, min(limits.MAX_PAGE, self.rows // each))
        page = self.ports.batches.page(state, cursor=cursor, limit=limit)
        idle = [one for one in page.batches if one.active_until(now) <= idle_since and not one.gone(now)]
        taken = [batch for batch in idle if self._expire(batch, now)]
        return Expired(len(taken), sum(batch.items for batch in taken), page.cursor)

    def remove(self, batch_id: int) -> Expired:
        try:
            batch = self._known.current(batch_id)
        except BatchGone:
            return Expired()  # a repeat
        if not batch.state.terminal:
            raise InvalidRequest(
                f"batch {batch_id} is {batch.state}, and only an ended batch can be removed; cancel it first"
            )
        removed = self.ports.batches.expire(batch_id, now=self.ports.clock.now())
        return Expired(1, batch.items) if removed else Expired()

    def _expire(self, batch: Batch, now: int) -> bool:
        if batch.state.terminal:
            return self.ports.batches.expire(batch.batch_id, now=now)
        if batch.kind is Kind.BUFFER:
            return False  # an idle buffer is still wanted
        batch, certain = self.inspect(batch, budget=_LOOKED)
        if batch.state.terminal or not certain:
            return False
        return self._end_idle(batch, State.ORPHANED, now)

    def _there(self, batch_id: int, row: Batch | None) -> Batch:
        if row is None:
            raise not_found(batch_id)
        return self._known.unexpired(self._known.remember(row))


def _check_drains(batch: Batch) -> None:
    """Check that a batch can drain.

    Raises:
        InvalidRequest: it is estimated, and knows no items; it is bounded, so that its items would wait for
            each other; or it belongs to a pattern.
    """
    kind = batch.mode if batch.mode is Mode.ESTIMATED else "bounded" if batch.limit else batch.kind
    if kind != Kind.BATCH:
        raise InvalidRequest(
            f"batch {batch.batch_id} cannot close when it is drained: that takes a plain, exact batch without"
            f" a limit, and its kind is {kind}; close it without `when`"
        )
