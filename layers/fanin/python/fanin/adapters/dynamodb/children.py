"""The note in the parts table that says which batch is the child of an item."""

from __future__ import annotations

from typing import Any, Final

from fanin import names
from fanin.adapters.dynamodb.rows import Item, attribute
from fanin.app.ports.batches import ItemPlace
from fanin.domain.batch import Batch

_CHILD: Final = "child"


def key(item: ItemPlace) -> dict[str, Any]:
    """Key of the note of an item."""
    return {names.BATCH_ID: attribute(item.batch_id), names.PART: attribute(f"{_CHILD}/{item.ordinal}")}


def note(table: str, item: ItemPlace, child: Batch, *, instead_of: int | None) -> dict[str, Any]:
    """A put that notes the child of an item that has none, or has the one that may be replaced.

    The note lives as long as the child: after that the item may have another.
    """
    request: dict[str, Any] = {
        "TableName": table,
        "Item": {
            **key(item),
            _CHILD: attribute(child.batch_id),
            names.EXPIRES_AT: attribute(child.expires_at),
        },
        "ConditionExpression": f"attribute_not_exists({names.PART})",
    }
    if instead_of is not None:
        request["ConditionExpression"] += f" OR {_CHILD} = :instead_of"
        request["ExpressionAttributeValues"] = {":instead_of": attribute(instead_of)}
    return request


def read(row: Item) -> int:
    """Id of the child that a note names."""
    return int(row[_CHILD]["N"])
