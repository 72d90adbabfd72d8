"""Batch rows in a dict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.memory.accesses import Accesses
from fanin.app.ports.batches import Activity, Adoption, BatchRows, Completion, ItemPlace, Telling
from fanin.app.ports.parts import KeyRow
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import LIVE, Batch, Cause, ChangeLimits, Kind, Mode, State, Trouble
from fanin.domain.ids import MAX_ITEMS
from fanin.domain.totals import Sums, by_name, plus
from fanin.errors import IdempotencyKeyReused


class MemoryBatches:
    """A ``BatchStore``.

    Args:
        accesses: counts rows.
        ties: decides the order of rows that are due at the same time. DynamoDB's index lists them in any
            order, which stays the same.

    Attributes:
        item_keys: the keys of items, by batch, for the store of parts.
        changes: every write in order, as (row before, row after), as in the stream of the batches table; the
            row before is None for a new one.
    """

    def __init__(self, accesses: Accesses, *, ties: int = 0) -> None:
        self.changes: list[tuple[Batch | None, Batch]] = []
        self._accesses = accesses
        self._ties = ties
        self._rows: dict[int, Batch] = {}
        self._due: dict[int, int] = {}
        self._keys: dict[tuple[int, str], range] = {}
        self._children: dict[ItemPlace, int] = {}
        self.item_keys: dict[int, dict[str, KeyRow]] = {}

    def create(self, batch: Batch) -> Batch | None:
        def put() -> Batch | None:
            old = self._rows.get(batch.batch_id)
            if old is None:
                return self._new(batch)
            self._accesses.refused["batches.create"] += 1
            return old if old.salt == batch.salt else None

        return self._accesses.write("batches.create", put)

    def create_child(self, batch: Batch, of: ItemPlace, *, instead_of: int | None = None) -> Adoption:
        def transact() -> Adoption:
            old, child = self._rows.get(batch.batch_id), self._children.get(of)
            if old is None and child in {None, instead_of}:
                self._children[of] = batch.batch_id
                return Adoption(self._new(batch), batch.batch_id)
            self._accesses.refused["batches.create_child"] += 1
            if old is None:
                return Adoption(None, child)
            return Adoption(old, old.batch_id) if old.salt == batch.salt else Adoption(None, None)

        return self._accesses.write("batches.create_child", transact, rows=2)

    def child_of(self, item: ItemPlace) -> int | None:
        return self._accesses.read("batches.child_of", lambda: self._children.get(item))

    def read(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        rows = {
            batch_id: self._accesses.read("batches.read", lambda: self._rows.get(batch_id))  # noqa: B023
            for batch_id in dict.fromkeys(batch_ids)
        }
        return {batch_id: row for batch_id, row in rows.items() if row is not None}

    def allocate(
        self,
        batch_id: int,
        n: int,
        *,
        activity: Activity | None,
        room: int | None,
        most: int | None = None,
    ) -> Batch | None:
        row, moved = self._update(
            "allocate",
            batch_id,
            lambda row: _takes(row, n, room, most),
            lambda row: _with_items(row, n),
            activity,
            once=True,
        )
        return row if moved else None

    def allocate_once(
        self, batch: Batch, n: int, key: IdempotencyKey, *, activity: Activity, by_item: bool = False
    ) -> int | None:
        def transact() -> int | None:
            issued = self._keys.get((batch.batch_id, key.name))
            if issued is not None:
                self._accesses.refused["batches.allocate_once"] += 1
                if len(issued) != n:
                    raise IdempotencyKeyReused(
                        f"idempotency key {key.text!r} was used for {len(issued)} items;"
                        f" use a new key for {n}"
                    )
                return issued.start
            row = self._rows.get(batch.batch_id)
            room = None if batch.limit is None else batch.limit - n
            takes = row is not None and _takes(row, n, room, batch.max_items, draining=by_item)
            if row is None or row.items != batch.items or not takes:
                self._accesses.refused["batches.allocate_once"] += 1
                return None
            self._keys[batch.batch_id, key.name] = range(row.items, row.items + n)
            grown = replace(row, grown=row.grown + n) if by_item else row
            self._put(row, _with_items(grown, n), activity)
            return row.items

        return self._accesses.write("batches.allocate_once", transact, rows=2)

    def allocate_keys(
        self, batch: Batch, rows: Sequence[KeyRow], *, activity: Activity, by_item: bool = False
    ) -> bool:
        n = len(rows)

        def transact() -> bool:
            row, keys = self._rows.get(batch.batch_id), self.item_keys.setdefault(batch.batch_id, {})
            room = None if batch.limit is None else batch.limit - n
            takes = row is not None and _takes(row, n, room, batch.max_items, draining=by_item)
            there = any(one.key in keys for one in rows)
            if row is None or row.items != batch.items or not takes or there:
                self._accesses.refused["batches.allocate_keys"] += 1
                return False
            keys |= {one.key: one for one in rows}
            grown = row.grown + n if by_item else row.grown
            self._put(row, _with_items(replace(row, grown=grown, keyed=row.keyed + n), n), activity)
            return True

        return self._accesses.write("batches.allocate_keys", transact, rows=n + 2)

    def allocate_counted(
        self, batch_id: int, n: int, *, items: int, pending: int, activity: Activity
    ) -> Batch | None:
        row, moved = self._update(
            "allocate_counted",
            batch_id,
            lambda row: row.state is State.OPEN and row.limit is not None and row.items == items,
            lambda row: replace(row, items=items + n, pending_bound=pending + n),
            activity,
            once=True,
        )
        return row if moved else None

    def rebound(self, batch_id: int, *, items: int, pending: int) -> bool:
        return self._update(
            "rebound",
            batch_id,
            lambda row: row.items == items,
            lambda row: replace(row, pending_bound=pending),
        )[1]

    def drain(self, batch_id: int, *, now: int, activity: Activity) -> tuple[Batch | None, bool]:
        return self._update(
            "drain",
            batch_id,
            lambda row: row.state is State.OPEN and row.draining_at is None,
            lambda row: replace(row, draining_at=now),
            activity,
        )

    def close(
        self, batch_id: int, *, now: int, activity: Activity | None = None, grown: int | None = None
    ) -> tuple[Batch | None, bool]:
        return self._update(
            "close",
            batch_id,
            lambda row: row.state is State.OPEN and grown in {None, row.grown},
            lambda row: replace(row, state=State.CLOSED, closed_at=now),
            activity,
        )

    def begin(
        self, batch_id: int, items: int, *, now: int, deadline: int, activity: Activity
    ) -> tuple[Batch | None, bool]:
        return self._update(
            "begin",
            batch_id,
            lambda row: row.state is State.OPEN and row.items == 0,
            lambda row: replace(
                row, state=State.CLOSED, closed_at=now, items=items, deadline=deadline, retries=0
            ),
            activity,
        )

    def end(
        self,
        batch_id: int,
        state: State,
        *,
        now: int,
        sources: Collection[State],
        partial: bool = False,
        touched_at: int | None = None,
        done: Completion | None = None,
        cause: Cause | None = None,
    ) -> tuple[Batch | None, bool]:
        counts: dict[str, Any] = {} if done is None else done._asdict()
        if done is not None and not done.totals:
            del counts["totals"], counts["totals_exact"]
        return self._update(
            "end",
            batch_id,
            lambda row: row.state in sources and touched_at in {None, row.touched_at},
            lambda row: replace(row, state=state, ended_at=now, partial=partial, cause=cause, **counts),
        )

    def postpone(
        self, batch_id: int, *, deadline: int, until: int, activity: Activity
    ) -> tuple[Batch | None, bool]:
        return self._update(
            "postpone",
            batch_id,
            lambda row: row.state in LIVE and row.deadline == deadline,
            lambda row: replace(row, deadline=until, retries=row.retries + 1),
            activity,
        )

    def change(
        self, batch_id: int, change: ChangeLimits, *, failing: int | None, due_at: int
    ) -> tuple[Batch | None, bool]:
        def changed(row: Batch) -> Batch:
            self._due[batch_id] = due_at
            given: dict[str, Any] = dict(change.given)
            return replace(row, failing=row.failing if failing is None else failing, **given)

        return self._update("change", batch_id, lambda row: row.state in LIVE, changed)

    def touch(self, batch_id: int, activity: Activity) -> None:
        self._update(
            "touch",
            batch_id,
            lambda row: row.state in LIVE and row.touched_at <= activity.touched_at,
            lambda row: row,
            activity,
        )

    def tell_stall(self, batch_id: int, activity: Activity, trouble: Trouble, why: str) -> bool:
        return self._update(
            "tell_stall",
            batch_id,
            lambda row: row.state in LIVE and row.touched_at == activity.touched_at,
            lambda row: replace(row, stall_told=activity.touched_at, stall_why=why, attention=trouble),
            activity,
        )[1]

    def count(self, batch_id: int, n: int, *, activity: Activity | None, sums: Sums = ()) -> Batch | None:
        row, moved = self._update(
            "count",
            batch_id,
            lambda row: row.state in LIVE and (row.mode is Mode.ESTIMATED or row.kind is Kind.SCATTER),
            lambda row: replace(row, acked=row.acked + n, totals=_with_sums(row, sums)),
            activity,
            once=True,
        )
        return row if moved else None

    def hint_failures(self, batch_id: int, n: int) -> Batch | None:
        row, done = self._update(
            "hint_failures",
            batch_id,
            lambda row: row.state in LIVE,
            lambda row: replace(row, failing=row.failing + n),
        )
        return row if done else None

    def expire(self, batch_id: int, *, now: int) -> bool:
        return self._update(
            "expire",
            batch_id,
            lambda row: row.state.terminal and not row.gone(now),
            lambda row: replace(row, expires_at=now // 1000, attention=None),
        )[1]

    def count_in(self, state: State) -> tuple[int, bool]:
        def count() -> int:
            return sum(row.state is state for row in list(self._rows.values()))

        return self._accesses.read("batches.count_in", count), False

    def page(self, state: State, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        listing = f"batches {state}"
        shard, *place = cursors.decode(listing, cursor, {1, 3}) if cursor is not None else (0,)
        after = (shard, *self._place(*place)) if place else (shard,)

        def query() -> list[tuple[int, ...]]:
            places = (
                (b % names.SHARDS, *self._place(self._due[b], b))
                for b, row in self._rows.items()
                if row.state is state
            )
            return sorted(place for place in places if place > after)

        places = self._accesses.read("batches.page", query)
        rows = self.read([batch_id for *_, batch_id in places[:limit]])
        batches = [row for row in rows.values() if row.state is state]
        if len(places) <= limit:
            return BatchRows(batches, None)
        shard, due_at, _, batch_id = places[limit - 1]
        return BatchRows(batches, cursors.encode(listing, shard, due_at, batch_id))

    def page_of_user_key(self, user_key: str, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        listing = cursors.listing_of("batches of", user_key)
        before = None if cursor is None else cursors.decode(listing, cursor, {1})[0]

        def query() -> list[int]:
            mine = (batch_id for batch_id, row in self._rows.items() if user_key and row.user_key == user_key)
            return sorted((one for one in mine if before is None or one < before), reverse=True)

        found = self._accesses.read("batches.page_of_user_key", query)
        page = found[:limit]
        batches = list(self.read(page).values())
        return BatchRows(batches, cursors.encode(listing, page[-1]) if len(found) > limit else None)

    def page_of_parent(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        listing = f"children of {batch_id}"
        after = "" if cursor is None else str(cursors.decode(listing, cursor, {1})[0])

        def query() -> list[tuple[str, int]]:
            mine = [
                (str(of.ordinal), child) for of, child in self._children.items() if of.batch_id == batch_id
            ]
            return sorted(one for one in mine if one[0] > after)

        found = self._accesses.read("batches.page_of_parent", query)
        page = found[:limit]
        rows = list(self.read([child for _, child in page]).values())
        return BatchRows(rows, cursors.encode(listing, int(page[-1][0])) if len(found) > limit else None)

    def tell(self, batch_id: int, told: Telling) -> Batch | None:
        def new(row: Batch) -> bool:
            before = getattr(row, told.field)
            return not before or (told.field == "milestone" and before < told.value)

        changes: dict[str, Any] = {told.field: told.value}
        if told.trouble:
            changes["attention"] = told.trouble
        row, done = self._update(
            "tell",
            batch_id,
            lambda row: row.state in LIVE and new(row),
            lambda row: replace(row, **changes),
        )
        return row if done else None

    def flag(self, batch: Batch, trouble: Trouble | None) -> None:
        self._update(
            "flag",
            batch.batch_id,
            lambda row: row.state.terminal,
            lambda row: replace(row, attention=trouble),
        )

    def page_of_flagged(self, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        order = {trouble: place for place, trouble in enumerate(Trouble)}
        after = () if cursor is None else cursors.decode("attention", cursor, {2})

        def query() -> list[tuple[int, int]]:
            rows = list(self._rows.values())
            found = [(order[row.attention], -row.batch_id) for row in rows if row.attention]
            return sorted(place for place in found if not after or place > (after[0], -after[1]))

        found = self._accesses.read("batches.page_of_flagged", query)
        place = found[min(limit, len(found)) - 1] if found else (0, 0)
        more = cursors.encode("attention", place[0], -place[1]) if len(found) > limit else None
        return BatchRows(list(self.read([-one for _, one in found[:limit]]).values()), more)

    def count_flagged(self) -> Mapping[Trouble, int]:
        def count() -> Mapping[Trouble, int]:
            return Counter(row.attention for row in list(self._rows.values()) if row.attention)

        return self._accesses.read("batches.count_flagged", count)

    def _place(self, due_at: int, batch_id: int) -> tuple[int, int, int]:
        """Where the index lists a row within its shard."""
        return due_at, hash((self._ties, batch_id)), batch_id

    def due(self, before: int) -> Iterator[int]:
        def query() -> list[tuple[int, int]]:
            live = [batch_id for batch_id, row in self._rows.items() if row.state in LIVE]
            return sorted((at, batch_id) for batch_id in live if (at := self._due[batch_id]) < before)

        return (batch_id for _, batch_id in self._accesses.read("batches.due", query))

    def next_due(self) -> int | None:
        """When the next live batch is due for the reaper, ms; None if no batch is live."""
        live = [batch_id for batch_id, row in list(self._rows.items()) if row.state in LIVE]
        return min((self._due[batch_id] for batch_id in live), default=None)

    def _update(
        self,
        call: str,
        batch_id: int,
        condition: Callable[[Batch], bool],
        change: Callable[[Batch], Batch],
        activity: Activity | None = None,
        *,
        once: bool = False,
    ) -> tuple[Batch | None, bool]:
        def update() -> tuple[Batch | None, bool]:
            row = self._rows.get(batch_id)
            if row is None or not condition(row):
                self._accesses.refused[f"batches.{call}"] += 1
                return row, False
            return self._put(row, change(row), activity), True

        return self._accesses.write(f"batches.{call}", update, once=once)

    def _new(self, batch: Batch) -> Batch:
        self._due[batch.batch_id] = batch.look_at(batch.created_at)
        return self._put(None, batch)

    def _put(self, old: Batch | None, new: Batch, activity: Activity | None = None) -> Batch:
        if activity is not None:
            new = replace(new, touched_at=activity.touched_at)
            self._due[new.batch_id] = activity.due_at
        self._rows[new.batch_id] = new
        self.changes.append((old, new))
        return new


def _with_sums(row: Batch, sums: Sums) -> dict[str, int]:
    return by_name(tuple(row.totals), plus(tuple(row.totals.values()), sums[: len(row.totals)]))


def _takes(row: Batch, n: int, room: int | None, most: int | None, *, draining: bool = False) -> bool:
    fits = row.limit is None if room is None else row.limit is not None and row.pending_bound <= room
    capped = (row.max_items is None) == (most is None)
    opened = row.state is State.OPEN and (draining or not row.draining)
    return opened and row.items <= (MAX_ITEMS if most is None else most) - n and fits and capped


def _with_items(row: Batch, n: int) -> Batch:
    bound = row.pending_bound if row.limit is None else row.pending_bound + n
    return replace(row, items=row.items + n, pending_bound=bound)
