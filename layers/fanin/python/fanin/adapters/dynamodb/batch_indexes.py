"""How batches are found: by state, the longest due first; by user key; by trouble; by item.

The note in the parts table says which batch is the child of an item.
"""

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Any, Final

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.parts import part_key
from fanin.adapters.dynamodb.rows import Item, attribute, attributes, sharded
from fanin.app.ports.batches import ItemPlace
from fanin.domain.batch import LIVE, Batch, State

_DUE: Final = 100
"""How many rows of one shard of the index are read at a time."""


class _Index:
    """Reads an index of batches, whose rows are spread over shards for each value, ``<value>#<shard>``.

    The index follows the table with a delay, so a batch may have moved on: read its row.

    Args:
        table: name of the batches table.
        index: name of the index.
        key: the attribute that is its hash key.
        connection: calls DynamoDB.
    """

    def __init__(self, table: str, index: str, key: str, connection: Connection) -> None:
        self._key = key
        self._index = {"TableName": table, "IndexName": index}
        self._connection = connection

    def _asked(self, shard: str, and_: str = "", **values: int) -> dict[str, Any]:
        """A query of a shard; with a further condition, and its values."""
        typed = {f":{name}": attribute(value) for name, value in values.items()}
        return {
            **self._index,
            "KeyConditionExpression": f"{self._key} = :shard{and_}",
            "ExpressionAttributeValues": {":shard": attribute(shard), **typed},
        }

    def _rows(self, asked: dict[str, Any], limit: int) -> Iterator[Item]:
        """All rows that a query finds, of which so many are read at a time."""
        after: dict[str, Any] = {}
        while True:
            rows, last = self._connection.query({**asked, "Limit": limit, **after})
            yield from rows
            if last is None:
                return
            after = {"ExclusiveStartKey": last}

    def count(self, value: str) -> tuple[int, bool]:
        """How many batches have the value, and whether there are more than one page of each shard has."""
        shards = [{**self._asked(sharded(value, n)), "Select": "COUNT"} for n in range(names.SHARDS)]
        pages = self._connection.parallel.map(self._connection.count_page, shards)
        return sum(found for found, _ in pages), any(more for _, more in pages)


class StateIndex(_Index):
    """The index of batches by state, the longest due first."""

    def page(self, state: State, *, cursor: str | None, limit: int) -> tuple[list[int], str | None]:
        """List ids of batches in a state, shard by shard.

        Returns:
            The ids, and the cursor of the next page; None at the end.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """
        listing = f"batches {state}"
        shard, *after = cursors.decode(listing, cursor, {1, 3}) if cursor is not None else (0,)
        found: list[int] = []
        while shard < names.SHARDS and len(found) < limit:
            of_shard = sharded(state, shard)
            request = {**self._asked(of_shard), "Limit": limit - len(found)}
            if after:
                place = dict(zip((names.DUE_AT, names.BATCH_ID), after, strict=True))
                request["ExclusiveStartKey"] = attributes({self._key: of_shard, **place})
            rows, last = self._connection.query(request)
            found += [batch_id for _, batch_id in map(_place, rows)]
            shard, after = (shard + 1, []) if last is None else (shard, [*_place(last)])
        return found, cursors.encode(listing, shard, *after) if shard < names.SHARDS else None

    def due(self, before: int) -> Iterator[int]:
        """Ids of live batches that are due before a time, ms; the longest due first."""
        shards = [sharded(state, n) for state in LIVE for n in range(names.SHARDS)]
        asked = [self._asked(shard, " AND due_at < :due_before", due_before=before) for shard in shards]
        return (batch_id for _, batch_id in merge(*(map(_place, self._rows(one, _DUE)) for one in asked)))


def _place(row: Item) -> tuple[int, int]:
    """When a batch is due, and its id."""
    return int(row[names.DUE_AT]["N"]), int(row[names.BATCH_ID]["N"])


class NewestFirst(_Index):
    """An index that lists the newest first.

    A batch id begins with the time at which it was made. So ids say which batch is newer, no two rows tie,
    and a page goes on below an id.
    """

    def page(self, value: str, *, cursor: str | None, limit: int) -> tuple[list[int], str | None]:
        """List ids of batches with a value, the newest first.

        Returns:
            The ids, and the cursor of the next page; None at the end.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """
        listing = cursors.listing_of("batches of", value)
        before = None if cursor is None else cursors.decode(listing, cursor, {1})[0]
        found = self.below(value, before, limit + 1, share=limit)
        page = found[:limit]
        return page, cursors.encode(listing, page[-1]) if len(found) > limit else None

    def below(self, value: str, before: int | None, limit: int, *, share: int | None = None) -> list[int]:
        """Ids of batches with a value, below an id; ``share`` is how many are expected of all shards."""
        each = (limit if share is None else share) // names.SHARDS + 1
        shards = [self._shard(sharded(value, n), before, each) for n in range(names.SHARDS)]
        return list(islice(merge(*shards, reverse=True), limit))

    def _shard(self, shard: str, before: int | None, limit: int) -> Iterator[int]:
        if before is None:
            asked = self._asked(shard)
        else:
            asked = self._asked(shard, f" AND {names.BATCH_ID} < :before", before=before)
        rows = self._rows({**asked, "ScanIndexForward": False}, limit)
        return (int(row[names.BATCH_ID]["N"]) for row in rows)


_CHILD: Final = "child"
NO_PART: Final = f"attribute_not_exists({names.PART})"


class Children:
    """The notes that say which batch is the child of an item.

    Args:
        table: name of the parts table.
        connection: calls DynamoDB.
    """

    def __init__(self, table: str, connection: Connection) -> None:
        self._table = table
        self._connection = connection

    def of(self, item: ItemPlace) -> int | None:
        """Id of the child that the note of an item names; None if it has none."""
        rows = self._connection.read(self._table, [_note_key(item)])
        return self.noted(rows[0]) if rows else None

    @staticmethod
    def noted(row: Item) -> int:
        """Id of the child that a note names."""
        return int(row[_CHILD]["N"])

    def put(self, item: ItemPlace, child: Batch, *, instead_of: int | None) -> dict[str, Any]:
        """A put that notes the child of an item that has none, or has the one that may be replaced.

        The note lives as long as the child: after that the item may have another.
        """
        note = _note_key(item) | attributes({_CHILD: child.batch_id, names.EXPIRES_AT: child.expires_at})
        request: dict[str, Any] = {"TableName": self._table, "Item": note, "ConditionExpression": NO_PART}
        if instead_of is not None:
            request["ConditionExpression"] += f" OR {_CHILD} = :instead_of"
            request["ExpressionAttributeValues"] = {":instead_of": attribute(instead_of)}
        return request

    def page(self, batch_id: int, *, cursor: str | None, limit: int) -> tuple[list[int], str | None]:
        """List ids of the children of a batch's items; the keys of the notes are ordered as texts.

        Returns:
            The ids, and the cursor of the next page; None at the end.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """
        listing = f"children of {batch_id}"
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": f"{names.BATCH_ID} = :batch AND begins_with({names.PART}, :child)",
            "ExpressionAttributeValues": attributes({":batch": batch_id, ":child": f"{_CHILD}/"}),
            "Limit": limit,
        }
        if cursor is not None:
            (after,) = cursors.decode(listing, cursor, {1})
            request["ExclusiveStartKey"] = _note_key(ItemPlace(batch_id, after))
        notes, last = self._connection.query(request)
        ordinal = None if last is None else int(last[names.PART]["S"].removeprefix(f"{_CHILD}/"))
        return list(map(self.noted, notes)), None if ordinal is None else cursors.encode(listing, ordinal)


def _note_key(item: ItemPlace) -> dict[str, Any]:
    return part_key((item.batch_id, f"{_CHILD}/{item.ordinal}"))
