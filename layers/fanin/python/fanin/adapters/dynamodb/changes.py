"""A conditional change of one row, as DynamoDB's expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fanin.adapters.dynamodb.rows import Value, attribute

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
    """

    when: Sequence[str]
    values: Mapping[str, Value] = field(default_factory=dict)
    sets: Mapping[str, Value] = field(default_factory=dict)
    adds: Mapping[str, int] = field(default_factory=dict)

    def request(self, table: str, key: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of UpdateItem, and of an Update in a transaction."""
        sets = ", ".join(f"#{name} = :set_{name}" for name in self.sets)
        adds = ", ".join(f"#{name} :add_{name}" for name in self.adds)
        change = " ".join(part for part in (sets and f"SET {sets}", adds and f"ADD {adds}") if part)
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
