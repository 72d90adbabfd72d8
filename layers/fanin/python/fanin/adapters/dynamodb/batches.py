"""Batch rows on DynamoDB: every change of state is one conditional write."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.dynamodb.batch_indexes import (
    NewestFirst,
    StateIndex,
    child_key,
    child_note,
    children_of,
    noted_child,
    noted_ordinal,
)
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.parts import key_rows
from fanin.adapters.dynamodb.rows import (
    SUMS,
    Item,
    Value,
    attention_shard,
    attribute,
    decode,
    encode,
    in_row,
    state_shard,
    sums_of,
)
from fanin.app.ports.batches import Activity, Adoption, BatchRows, Completion, ItemPlace, Telling
from fanin.app.ports.parts import KeyRow
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import Batch, Cause, ChangeLimits, Kind, Mode, State, Trouble
from fanin.domain.ids import MAX_ITEMS
from fanin.domain.totals import Sums
from fanin.errors import IdempotencyKeyReused, OutcomeUnknown, ServiceUnavailable

_ALIAS: Final = re.compile(r"#(\w+)")


@dataclass(frozen=True)
class Change:
    """What to set and to add, under which conditions.

    Attributes:
        when: conditions that must all hold, with attributes as ``#name``, in case a name is a reserved word,
            and values as ``:name``.
        values: of the conditions.
        sets: attribute → new value.
        adds: attribute → number to add.
        removes: attributes that go.
    """

    when: Sequence[str]
    values: Mapping[str, Value] = field(default_factory=dict)
    sets: Mapping[str, Value] = field(default_factory=dict)
    adds: Mapping[str, int] = field(default_factory=dict)
    removes: Sequence[str] = ()

    def request(self, table: str, key: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of UpdateItem, and of an Update in a transaction."""
        sets = ", ".join(f"#{name} = :set_{name}" for name in self.sets)
        adds = ", ".join(f"#{name} :add_{name}" for name in self.adds)
        removes = ", ".join(f"#{name}" for name in self.removes)
        parts = (("SET", sets), ("ADD", adds), ("REMOVE", removes))
        change = " ".join(f"{verb} {part}" for verb, part in parts if part)
        condition = " AND ".join(f"({test})" for test in self.when)
        values = {f":{name}": attribute(value) for name, value in self.values.items()}
        values |= {f":set_{name}": attribute(value) for name, value in self.sets.items()}
        values |= {f":add_{name}": attribute(value) for name, value in self.adds.items()}
        return {
            "TableName": table,
            "Key": key,
            "UpdateExpression": change,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {
                f"#{name}": name for name in dict.fromkeys(_ALIAS.findall(change + condition))
            },
            "ExpressionAttributeValues": values,
        }


_IS_OPEN: Final = "#state = :open"
_NOT_DRAINING: Final = "attribute_not_exists(#draining_at)"
_IS_LIVE: Final = "#state IN (:open, :closed)"
_OPEN: Final[Mapping[str, Value]] = {"open": State.OPEN}
_LIVE: Final[Mapping[str, Value]] = {"open": State.OPEN, "closed": State.CLOSED}


class DynamoBatches:
    """A ``BatchStore``.

    Args:
        table: name of the batches table.
        parts_table: name of the parts table, which keeps the idempotency keys.
        connection: calls DynamoDB.
    """

    def __init__(self, table: str, parts_table: str, connection: Connection) -> None:
        self._table = table
        self._parts_table = parts_table
        self._connection = connection
        self._index = StateIndex(table, connection)
        self._user_keys = NewestFirst(table, names.INDEX_BY_USER_KEY, names.USER_SHARD, connection)
        self._flagged = NewestFirst(table, names.INDEX_BY_ATTENTION, names.ATTENTION, connection)

    def create(self, batch: Batch) -> Batch | None:
        done, row = self._connection.update(self._new(batch))
        return batch if done else _same(batch, row)

    def create_child(self, batch: Batch, of: ItemPlace, *, instead_of: int | None = None) -> Adoption:
        note = child_note(self._parts_table, of, batch, instead_of=instead_of)
        failed = self._connection.transact(
            [
                {"Put": {**self._new(batch), "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}},
                {"Put": {**note, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}},
            ]
        )
        if failed is None:
            return Adoption(batch, batch.batch_id)
        row, noted = failed
        if row is None:
            return Adoption(None, None if noted is None else noted_child(noted))
        same = _same(batch, row)
        return Adoption(same, None if same is None else batch.batch_id)

    def child_of(self, item: ItemPlace) -> int | None:
        rows = self._connection.read(self._parts_table, [child_key(item)])
        return noted_child(rows[0]) if rows else None

    def read(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        keys = [_key(batch_id) for batch_id in dict.fromkeys(batch_ids)]
        rows = (decode(row) for row in self._connection.read(self._table, keys))
        return {row.batch_id: row for row in rows}

    def allocate(
        self,
        batch_id: int,
        n: int,
        *,
        activity: Activity | None,
        room: int | None,
        most: int | None = None,
    ) -> Batch | None:
        return self._add(batch_id, _allocation(n, activity, room, most), _ITEMS_LOST)

    def allocate_once(
        self, batch: Batch, n: int, key: IdempotencyKey, *, activity: Activity, by_item: bool = False
    ) -> int | None:
        room = None if batch.limit is None else batch.limit - n
        allocation = _allocation(n, activity, room, batch.max_items, unchanged=batch.items, by_item=by_item)
        use = {
            "TableName": self._parts_table,
            "Item": {
                names.BATCH_ID: attribute(batch.batch_id),
                names.PART: attribute(f"add/{key.name}"),
                "first": attribute(batch.items),
                "count": attribute(n),
                names.EXPIRES_AT: attribute(batch.expires_at),
            },
            "ConditionExpression": f"attribute_not_exists({names.PART})",
        }
        failed = self._connection.transact(
            [
                {"Put": {**use, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}},
                {"Update": allocation.request(self._table, _key(batch.batch_id))},
            ]
        )
        if failed is None:
            return batch.items
        used = failed[0]
        return None if used is None else _first_answer(used, n, key.text)

    def allocate_keys(
        self, batch: Batch, rows: Sequence[KeyRow], *, activity: Activity, by_item: bool = False
    ) -> bool:
        n = len(rows)
        room = None if batch.limit is None else batch.limit - n
        allocation = _allocation(
            n, activity, room, batch.max_items, unchanged=batch.items, by_item=by_item, keyed=True
        )
        expires = {names.EXPIRES_AT: attribute(batch.expires_at)}
        puts = [
            {
                "Put": {
                    "TableName": self._parts_table,
                    "Item": {**row, **expires},
                    "ConditionExpression": f"attribute_not_exists({names.PART})",
                }
            }
            for row in key_rows(batch.batch_id, rows)
        ]
        update = {"Update": allocation.request(self._table, _key(batch.batch_id))}
        return self._connection.transact([*puts, update]) is None

    def allocate_counted(
        self, batch_id: int, n: int, *, items: int, pending: int, activity: Activity
    ) -> Batch | None:
        when = [_IS_OPEN, "#items = :items", "attribute_exists(#limit)"]
        added = {"items": items + n, "pending_bound": pending + n, **_activity(activity)}
        return self._add(batch_id, Change(when, {**_OPEN, "items": items}, added), _ITEMS_LOST)

    def rebound(self, batch_id: int, *, items: int, pending: int) -> bool:
        change = Change(["#items = :items"], {"items": items}, {"pending_bound": pending})
        return self._update(batch_id, change)[1]

    def drain(self, batch_id: int, *, now: int, activity: Activity) -> tuple[Batch | None, bool]:
        begun = {"draining_at": now, **_activity(activity)}
        return self._update(batch_id, Change([_IS_OPEN, _NOT_DRAINING], _OPEN, begun))

    def close(
        self, batch_id: int, *, now: int, activity: Activity | None = None, grown: int | None = None
    ) -> tuple[Batch | None, bool]:
        moved = {**_state(State.CLOSED, batch_id), "closed_at": now, **_activity(activity)}
        when, values = [_IS_OPEN], dict(_OPEN)
        if grown == 0:
            when.append("attribute_not_exists(#grown)")
        elif grown is not None:
            when.append("#grown = :grown")
            values["grown"] = grown
        return self._update(batch_id, Change(when, values, moved))

    def begin(
        self, batch_id: int, items: int, *, now: int, deadline: int, activity: Activity
    ) -> tuple[Batch | None, bool]:
        moved = {**_state(State.CLOSED, batch_id), "closed_at": now, **_activity(activity)}
        begun = {"items": items, "deadline": deadline, "retries": 0}
        return self._update(
            batch_id, Change([_IS_OPEN, "#items = :none"], {**_OPEN, "none": 0}, {**moved, **begun})
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
        values: dict[str, Value] = {f"from_{source}": source for source in sources}
        when = [f"#state IN ({', '.join(f':{name}' for name in values)})"]
        if touched_at is not None:
            when.append("#touched_at = :seen")
            values["seen"] = touched_at
        counts = {} if done is None else _counts(done)
        why = {} if cause is None else {"cause": cause}
        moved = {**_state(state, batch_id), "ended_at": now, "partial": partial, **counts, **why}
        return self._update(batch_id, Change(when, values, moved))

    def postpone(
        self, batch_id: int, *, deadline: int, until: int, activity: Activity
    ) -> tuple[Batch | None, bool]:
        when = [_IS_LIVE, "#deadline = :seen"]
        moved = {"deadline": until, **_activity(activity)}
        return self._update(batch_id, Change(when, {**_LIVE, "seen": deadline}, moved, {"retries": 1}))

    def change(
        self, batch_id: int, change: ChangeLimits, *, failing: int | None, due_at: int
    ) -> tuple[Batch | None, bool]:
        sets: dict[str, Value] = {name: in_row(name, value) for name, value in change.given.items()}
        sets["due_at"] = due_at
        if failing is not None:
            sets["failing"] = failing
        return self._update(batch_id, Change([_IS_LIVE], _LIVE, sets))

    def touch(self, batch_id: int, activity: Activity) -> None:
        when = [_IS_LIVE, "#touched_at <= :touched_at"]
        values = {**_LIVE, "touched_at": activity.touched_at}
        self._update(batch_id, Change(when, values, _activity(activity)))

    def tell_stall(self, batch_id: int, activity: Activity, trouble: Trouble, why: str) -> bool:
        told: dict[str, Value] = {"stall_told": activity.touched_at, "due_at": activity.due_at}
        told |= {"stall_why": why, names.ATTENTION: attention_shard(trouble, batch_id)}
        values = {**_LIVE, "touched_at": activity.touched_at}
        return self._update(batch_id, Change([_IS_LIVE, "#touched_at = :touched_at"], values, told))[1]

    def count(self, batch_id: int, n: int, *, activity: Activity | None, sums: Sums = ()) -> Batch | None:
        when = [_IS_LIVE, "#mode = :estimated OR #kind = :scatter"]
        values: dict[str, Value] = {**_LIVE, "estimated": Mode.ESTIMATED, "scatter": Kind.SCATTER}
        adds = {"acked": n, **dict(zip(SUMS, sums, strict=False))}
        return self._add(batch_id, Change(when, values, _activity(activity), adds), _COUNT_LOST)

    def hint_failures(self, batch_id: int, n: int) -> Batch | None:
        row, done = self._update(batch_id, Change([_IS_LIVE], _LIVE, {}, {"failing": n}))
        return row if done else None

    def expire(self, batch_id: int, *, now: int) -> bool:
        when = [f"NOT {_IS_LIVE}", "#expires_at > :now"]
        values = {**_LIVE, "now": now // 1000}
        change = Change(when, values, {names.EXPIRES_AT: now // 1000}, removes=[names.ATTENTION])
        return self._update(batch_id, change)[1]

    def tell(self, batch_id: int, told: Telling) -> Batch | None:
        when, values = [_IS_LIVE, f"attribute_not_exists(#{told.field})"], dict[str, Value](_LIVE)
        if told.field == "milestone":
            when[-1] += " OR #milestone < :value"
            values["value"] = told.value
        sets: dict[str, Value] = {told.field: told.value}
        if told.trouble:
            sets[names.ATTENTION] = attention_shard(told.trouble, batch_id)
        row, done = self._update(batch_id, Change(when, values, sets))
        return row if done else None

    def flag(self, batch: Batch, trouble: Trouble | None) -> None:
        when = [f"NOT {_IS_LIVE}", f"attribute_exists(#{names.STATE})"]
        if trouble is None:
            change = Change(when, _LIVE, removes=[names.ATTENTION])
        else:
            change = Change(when, _LIVE, {names.ATTENTION: attention_shard(trouble, batch.batch_id)})
        self._update(batch.batch_id, change)

    def page_of_flagged(self, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        at, before = (0, None) if cursor is None else cursors.decode("attention", cursor, {2})
        found: list[tuple[int, int]] = []
        for place, trouble in enumerate(Trouble):
            if place >= at and len(found) <= limit:
                left = limit + 1 - len(found)
                ids = self._flagged.below(trouble, before if place == at else None, left)
                found += [(place, batch_id) for batch_id in ids]
        now = self.read([batch_id for _, batch_id in found[:limit]])
        more = cursors.encode("attention", *found[limit - 1]) if len(found) > limit else None
        return BatchRows([now[batch_id] for _, batch_id in found[:limit] if batch_id in now], more)

    def count_flagged(self) -> Mapping[Trouble, int]:
        return {trouble: count for trouble in Trouble if (count := self._flagged.count(trouble))}

    def count_in(self, state: State) -> tuple[int, bool]:
        return self._index.count(state)

    def page(self, state: State, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        found, after = self._index.page(state, cursor=cursor, limit=limit)
        now = self.read(found)
        batches = [now[batch_id] for batch_id in found if batch_id in now and now[batch_id].state is state]
        return BatchRows(batches, after)

    def page_of_user_key(self, user_key: str, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        found, after = self._user_keys.page(user_key, cursor=cursor, limit=limit)
        now = self.read(found)
        return BatchRows([now[batch_id] for batch_id in found if batch_id in now], after)

    def page_of_parent(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        listing = f"children of {batch_id}"
        after = None if cursor is None else cursors.decode(listing, cursor, {1})[0]
        request = children_of(self._parts_table, batch_id, after=after, limit=limit)
        notes, last = self._connection.query(request)
        found = [noted_child(note) for note in notes]
        now = self.read(found)
        more = None if last is None else cursors.encode(listing, noted_ordinal(last))
        return BatchRows([now[child] for child in found if child in now], more)

    def due(self, before: int) -> Iterator[int]:
        return self._index.due(before)

    def _new(self, batch: Batch) -> dict[str, Any]:
        return {
            "TableName": self._table,
            "Item": encode(batch),
            "ConditionExpression": f"attribute_not_exists({names.BATCH_ID})",
        }

    def _update(self, batch_id: int, change: Change) -> tuple[Batch | None, bool]:
        request = change.request(self._table, _key(batch_id)) | {"ReturnValues": "ALL_NEW"}
        done, row = self._connection.update(request)
        return None if row is None else decode(row), done

    def _add(self, batch_id: int, change: Change, if_lost: str) -> Batch | None:
        """Add to a number of the row. The request is sent only once, since a repeat would add again."""
        request = change.request(self._table, _key(batch_id)) | {"ReturnValues": "ALL_NEW"}
        try:
            done, row = self._connection.update_once(request)
        except ServiceUnavailable as error:
            raise OutcomeUnknown(f"the answer for batch {batch_id} was lost, and {if_lost}") from error
        return decode(row) if done and row is not None else None


_ITEMS_LOST: Final = (
    "items may have been added that nobody knows; add them with an idempotency key, so that a repeat returns"
    " the same items"
)
_COUNT_LOST: Final = (
    "its items may have been counted; compare the batch's status with what you have counted, because a repeat"
    " counts again"
)


def _counts(done: Completion) -> dict[str, Value]:
    counts: dict[str, Value] = {"failed": done.failed, "failed_more": done.failed_more}
    return {**counts, **sums_of(done.totals), "totals_exact": done.totals_exact} if done.totals else counts


def _same(batch: Batch, row: Item | None) -> Batch | None:
    """The batch of a row that was there already, if it is the very batch that was to be created."""
    there = None if row is None else decode(row)
    return there if there is not None and there.salt == batch.salt else None


def _key(batch_id: int) -> dict[str, Any]:
    return {names.BATCH_ID: attribute(batch_id)}


def _state(state: State, batch_id: int) -> dict[str, Value]:
    return {names.STATE: state, names.STATE_SHARD: state_shard(state, batch_id)}


def _activity(activity: Activity | None) -> Mapping[str, Value]:
    return {} if activity is None else activity._asdict()


def _allocation(
    n: int,
    activity: Activity | None,
    room: int | None,
    most: int | None,
    *,
    unchanged: int | None = None,
    by_item: bool = False,
    keyed: bool = False,
) -> Change:
    adds = {"items": n, **({"grown": n} if by_item else {}), **({"keyed": n} if keyed else {})}
    values: dict[str, Value] = {**_OPEN, "most": (MAX_ITEMS if most is None else most) - n}
    if room is None:
        fits = "attribute_not_exists(#limit)"
    else:
        fits = "attribute_exists(#limit) AND #pending_bound <= :room"
        adds["pending_bound"] = n
        values["room"] = room
    capped = f"attribute_{'not_' if most is None else ''}exists(#max_items)"
    when = [_IS_OPEN, "#items <= :most", fits, capped]
    if not by_item:
        when.append(_NOT_DRAINING)
    if unchanged is not None:
        when.append("#items = :unchanged")
        values["unchanged"] = unchanged
    return Change(when, values, _activity(activity), adds)


def _first_answer(used: Item, n: int, key: str) -> int:
    count = int(used["count"]["N"])
    if count != n:
        raise IdempotencyKeyReused(
            f"idempotency key {key!r} was used for {count} items; use a new key for {n}"
        )
    return int(used["first"]["N"])
