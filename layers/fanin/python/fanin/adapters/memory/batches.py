"""Batch rows in a dict."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import neg
from typing import Any, TypeAlias

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.memory.accesses import Accesses
from fanin.adapters.memory.parts import MemoryParts
from fanin.adapters.parts import first_again, key_rows
from fanin.app.ports.batches import Activity, Adoption, BatchRows, BatchStore, ItemPlace, Written
from fanin.app.ports.parts import KeyRow
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import LIVE, Batch, State, Trouble
from fanin.domain.changes import Change, allocation_of

Place: TypeAlias = tuple[tuple[int, ...], int]
"""The position in a listing, as its cursors have it; and the id of the batch that is there."""


class MemoryBatches(BatchStore):
    """A ``BatchStore``.

    Args:
        accesses: counts rows.
        parts: where the keys of items are.
        ties: decides the order of rows that are due at the same time. DynamoDB's index lists them in any
            order, which stays the same.

    Attributes:
        changes: every write in order, as (row before, row after), as in the stream of the batches table; the
            row before is None for a new one.
    """

    def __init__(self, accesses: Accesses, parts: MemoryParts, *, ties: int = 0) -> None:
        self.changes: list[tuple[Batch | None, Batch]] = []
        self._accesses = accesses
        self._parts = parts
        self._ties = ties
        self._rows: dict[int, Batch] = {}
        self._due: dict[int, int] = {}
        self._keys: dict[tuple[int, str], range] = {}
        self._children: dict[ItemPlace, int] = {}

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
        def read(batch_id: int) -> Batch | None:
            return self._accesses.read("batches.read", lambda: self._rows.get(batch_id))

        return {one: row for one in dict.fromkeys(batch_ids) if (row := read(one)) is not None}

    def apply(self, call: str, batch_id: int, change: Change, *, if_lost: str = "") -> Written:
        def update() -> Written:
            row = self._rows.get(batch_id)
            if row is None or not change.fits(row):
                self._accesses.refused[f"batches.{call}"] += 1
                return row, False
            return self._change(row, change), True

        return self._accesses.write(f"batches.{call}", update, once=bool(if_lost))

    def _change(self, row: Batch, change: Change) -> Batch:
        self._due[row.batch_id] = change.sets.get("due_at", self._due[row.batch_id])
        return self._put(row, change.of(row))

    def allocate_once(
        self, batch: Batch, n: int, key: IdempotencyKey, *, activity: Activity, by_item: bool = False
    ) -> int | None:
        def transact() -> int | None:
            issued = self._keys.get((batch.batch_id, key.name))
            if issued is not None:
                self._accesses.refused["batches.allocate_once"] += 1
                return first_again(issued.start, len(issued), n, key.text)
            row = self._rows.get(batch.batch_id)
            change = allocation_of(batch, n, activity._asdict(), by_item=by_item)
            if row is None or not change.fits(row):
                self._accesses.refused["batches.allocate_once"] += 1
                return None
            self._keys[batch.batch_id, key.name] = range(row.items, row.items + n)
            self._change(row, change)
            return row.items

        return self._accesses.write("batches.allocate_once", transact, rows=2)

    def allocate_keys(
        self, batch: Batch, rows: Sequence[KeyRow], *, activity: Activity, by_item: bool = False
    ) -> bool:
        n, parts = len(rows), key_rows(batch.batch_id, rows)

        def transact() -> bool:
            row = self._rows.get(batch.batch_id)
            change = allocation_of(batch, n, activity._asdict(), by_item=by_item, keyed=True)
            if row is None or not change.fits(row) or any(self._parts.there(key) for key, _ in parts):
                self._accesses.refused["batches.allocate_keys"] += 1
                return False
            for key, part in parts:
                self._parts.apply(key, part)
            self._change(row, change)
            return True

        return self._accesses.write("batches.allocate_keys", transact, rows=n + 2)

    def count_in(self, state: State) -> tuple[int, bool]:
        def count() -> int:
            return sum(row.state is state for row in list(self._rows.values()))

        return self._accesses.read("batches.count_in", count), False

    def page(self, state: State, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        def places() -> list[Place]:
            found = [batch_id for batch_id, row in self._rows.items() if row.state is state]
            return [((one % names.SHARDS, self._due[one], one), one) for one in found]

        def order(shard: int, due_at: int = -1, batch_id: int = -1) -> tuple[int, ...]:
            return shard, due_at, hash((self._ties, batch_id)), batch_id

        rows, more = self._page("page", f"batches {state}", {1, 3}, places, order, cursor=cursor, limit=limit)
        return BatchRows([row for row in rows if row.state is state], more)

    def page_of_user_key(self, user_key: str, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        def places() -> list[Place]:
            return [((one,), one) for one, row in self._rows.items() if user_key and row.user_key == user_key]

        listing = cursors.listing_of("batches of", user_key)
        return self._page("page_of_user_key", listing, {1}, places, neg, cursor=cursor, limit=limit)

    def page_of_parent(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        def places() -> list[Place]:
            children = self._children.items()
            return [((of.ordinal,), child) for of, child in children if of.batch_id == batch_id]

        listing = f"children of {batch_id}"
        return self._page("page_of_parent", listing, {1}, places, str, cursor=cursor, limit=limit)

    def page_of_flagged(self, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        troubles = list(Trouble)

        def places() -> list[Place]:
            flagged = ((row.batch_id, row.attention) for row in self._rows.values() if row.attention)
            return [((troubles.index(trouble), one), one) for one, trouble in flagged]

        def order(trouble: int, batch_id: int) -> tuple[int, int]:
            return trouble, -batch_id

        return self._page("page_of_flagged", "attention", {2}, places, order, cursor=cursor, limit=limit)

    def _page(
        self,
        call: str,
        listing: str,
        sizes: Collection[int],
        places: Callable[[], list[Place]],
        order: Callable[..., Any],
        *,
        cursor: str | None,
        limit: int,
    ) -> BatchRows:
        """The rows of a page of a listing, in an order of its positions, which have one of the sizes."""
        after = None if cursor is None else order(*cursors.decode(listing, cursor, sizes))

        def query() -> list[Place]:
            found = [(order(*place), place, one) for place, one in places()]
            return [(place, one) for at, place, one in sorted(found) if after is None or at > after]

        found = self._accesses.read(f"batches.{call}", query)
        rows = self.read([batch_id for _, batch_id in found[:limit]])
        more = cursors.encode(listing, *found[limit - 1][0]) if len(found) > limit else None
        return BatchRows(list(rows.values()), more)

    def count_flagged(self) -> Mapping[Trouble, tuple[int, bool]]:
        def count() -> Mapping[Trouble, int]:
            return Counter(row.attention for row in list(self._rows.values()) if row.attention)

        found = self._accesses.read("batches.count_flagged", count)
        return {trouble: (number, False) for trouble, number in found.items()}

    def due(self, before: int) -> Iterator[int]:
        def query() -> list[tuple[int, int]]:
            live = [batch_id for batch_id, row in self._rows.items() if row.state in LIVE]
            return sorted((at, batch_id) for batch_id in live if (at := self._due[batch_id]) < before)

        return (batch_id for _, batch_id in self._accesses.read("batches.due", query))

    def next_due(self) -> int | None:
        """When the next live batch is due for the reaper, ms; None if no batch is live."""
        live = [batch_id for batch_id, row in list(self._rows.items()) if row.state in LIVE]
        return min((self._due[batch_id] for batch_id in live), default=None)

    def _new(self, batch: Batch) -> Batch:
        self._due[batch.batch_id] = batch.look_at(batch.created_at)
        return self._put(None, batch)

    def _put(self, old: Batch | None, new: Batch) -> Batch:
        self._rows[new.batch_id] = new
        self.changes.append((old, new))
        return new
