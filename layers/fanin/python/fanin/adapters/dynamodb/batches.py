"""Batch rows on DynamoDB: every change of state is one conditional write."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.dynamodb.batch_indexes import NO_PART, Children, NewestFirst, StateIndex
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.parts import part_key
from fanin.adapters.dynamodb.rows import Item, attribute, attributes, batch_key, change_of, decode, encode
from fanin.adapters.parts import first_again, key_rows
from fanin.app.ports.batches import Activity, Adoption, BatchRows, BatchStore, ItemPlace, Written
from fanin.app.ports.parts import KeyRow
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import Batch, State, Trouble
from fanin.domain.changes import Change, allocation_of
from fanin.errors import OutcomeUnknown, ServiceUnavailable


class DynamoBatches(BatchStore):
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
        self._index = StateIndex(table, names.INDEX_BY_STATE_SHARD, names.STATE_SHARD, connection)
        self._user_keys = NewestFirst(table, names.INDEX_BY_USER_KEY, names.USER_SHARD, connection)
        self._children = Children(parts_table, connection)
        self._flagged = NewestFirst(table, names.INDEX_BY_ATTENTION, names.ATTENTION, connection)

    def create(self, batch: Batch) -> Batch | None:
        done, row = self._connection.update(self._new(batch))
        return batch if done else _same(batch, row)

    def create_child(self, batch: Batch, of: ItemPlace, *, instead_of: int | None = None) -> Adoption:
        note = self._children.put(of, batch, instead_of=instead_of)
        failed = self._connection.transact([_put(self._new(batch)), _put(note)])
        if failed is None:
            return Adoption(batch, batch.batch_id)
        row, noted = failed
        if row is None:
            return Adoption(None, None if noted is None else self._children.noted(noted))
        same = _same(batch, row)
        return Adoption(same, None if same is None else batch.batch_id)

    def child_of(self, item: ItemPlace) -> int | None:
        return self._children.of(item)

    def read(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        keys = [batch_key(batch_id) for batch_id in dict.fromkeys(batch_ids)]
        rows = (decode(row) for row in self._connection.read(self._table, keys))
        return {row.batch_id: row for row in rows}

    def apply(
        self,
        call: str,  # noqa: ARG002  all calls are one kind of request here
        batch_id: int,
        change: Change,
        *,
        if_lost: str = "",
    ) -> Written:
        request = {**change_of(self._table, batch_id, change), "ReturnValues": "ALL_NEW"}
        if not if_lost:
            done, row = self._connection.update(request)
        else:
            try:
                done, row = self._connection.update_once(request)
            except ServiceUnavailable as error:
                raise OutcomeUnknown(f"the answer for batch {batch_id} was lost, and {if_lost}") from error
        return None if row is None else decode(row), done

    def allocate_once(
        self, batch: Batch, n: int, key: IdempotencyKey, *, activity: Activity, by_item: bool = False
    ) -> int | None:
        change = allocation_of(batch, n, activity._asdict(), by_item=by_item)
        use = part_key((batch.batch_id, f"add/{key.name}")) | attributes({"first": batch.items, "count": n})
        update = {"Update": change_of(self._table, batch.batch_id, change)}
        failed = self._connection.transact([_put(self._new_part(batch, use)), update])
        if failed is None:
            return batch.items
        used = failed[0]
        if used is None:
            return None
        return first_again(int(used["first"]["N"]), int(used["count"]["N"]), n, key.text)

    def allocate_keys(
        self, batch: Batch, rows: Sequence[KeyRow], *, activity: Activity, by_item: bool = False
    ) -> bool:
        change = allocation_of(batch, len(rows), activity._asdict(), by_item=by_item, keyed=True)
        parts = [part_key(key) | attributes(row) for key, row in key_rows(batch.batch_id, rows)]
        puts = [{"Put": self._new_part(batch, part)} for part in parts]
        update = {"Update": change_of(self._table, batch.batch_id, change)}
        return self._connection.transact([*puts, update]) is None

    def page_of_flagged(self, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        at, before = (0, None) if cursor is None else cursors.decode("attention", cursor, {2})
        found: list[tuple[int, int]] = []
        for place, trouble in enumerate(Trouble):
            if place >= at and len(found) <= limit:
                left = limit + 1 - len(found)
                ids = self._flagged.below(trouble, before if place == at else None, left)
                found += [(place, batch_id) for batch_id in ids]
        more = cursors.encode("attention", *found[limit - 1]) if len(found) > limit else None
        return self._listed([batch_id for _, batch_id in found[:limit]], more)

    def count_flagged(self) -> Mapping[Trouble, tuple[int, bool]]:
        return {trouble: found for trouble in Trouble if (found := self._flagged.count(trouble))[0]}

    def count_in(self, state: State) -> tuple[int, bool]:
        return self._index.count(state)

    def page(self, state: State, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        found, after = self._index.page(state, cursor=cursor, limit=limit)
        batches, _ = self._listed(found, after)
        return BatchRows([batch for batch in batches if batch.state is state], after)

    def page_of_user_key(self, user_key: str, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        return self._listed(*self._user_keys.page(user_key, cursor=cursor, limit=limit))

    def page_of_parent(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        return self._listed(*self._children.page(batch_id, cursor=cursor, limit=limit))

    def _listed(self, batch_ids: Sequence[int], cursor: str | None) -> BatchRows:
        """The rows of a listing, as they are now, without those that are gone."""
        now = self.read(batch_ids)
        return BatchRows([now[batch_id] for batch_id in batch_ids if batch_id in now], cursor)

    def due(self, before: int) -> Iterator[int]:
        return self._index.due(before)

    def _new_part(self, batch: Batch, row: Item) -> dict[str, Any]:
        """A put of a row that is not there yet, which lives as long as a batch."""
        item = {**row, names.EXPIRES_AT: attribute(batch.expires_at)}
        return {"TableName": self._parts_table, "Item": item, "ConditionExpression": NO_PART}

    def _new(self, batch: Batch) -> dict[str, Any]:
        no_row = f"attribute_not_exists({names.BATCH_ID})"
        return {"TableName": self._table, "Item": encode(batch), "ConditionExpression": no_row}


def _put(request: Mapping[str, Any]) -> dict[str, Any]:
    """A put of a transaction, which tells the row that is there if its condition fails."""
    return {"Put": {**request, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}}


def _same(batch: Batch, row: Item | None) -> Batch | None:
    """The batch of a row that was there already, if it is the very batch that was to be created."""
    there = None if row is None else decode(row)
    return there if there is not None and there.salt == batch.salt else None
