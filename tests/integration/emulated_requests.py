"""Random requests to DynamoDB, made in the emulator's own Python for ``emulated_queries.py``."""

import random
from typing import Any

TEXT, NUMBERED, INDEXED = "sort-by-text", "sort-by-number", "with-index"
PARTITIONS = ("1", "22", "3")
LETTERS = "ab/~0é\uffff\U0001f600"
OPERATORS = ("=", "<", "<=", ">", ">=")
WRONG = (
    "batch_id = :b AND part = :nowhere",
    "batch_id = :b AND batch_id = :s",
    "batch_id = :b AND part <> :s",
    "batch_id = :b OR part = :s",
    "batch_id = :b AND NOT part = :s",
    "batch_id = :b AND begins_with part, :s",
    "batch_id = :b AND ((part = :s))",
    "batch_id = :b AND part = :s AND colour = :s",
    "batch_id = :b AND name = :s",
    "batch_id = :b AND :s = part",
    "batch_id = :b AND part BETWEEN :s AND :b",
    "batch_id = :b part = :s",
    "batch_id=:b AND part<:s",
    "(batch_id = :b) AND (part >= :s)",
    "(batch_id = :b AND part >= :s",
    "batch_id = :s AND part >= :b",
    "batch_id > :b AND part >= :s",
    "part = :s",
    "",
)
"""Conditions that are refused, or that are written in an unusual way."""


class Requests:
    """Random requests: writes, and queries of which some are wrong."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def next(self) -> tuple[str, dict[str, Any]]:
        one = self._random
        kind = one.choices(("write", "query", "replace"), (5, 5, 0.05))[0]
        return getattr(self, f"_{kind}")(one.choice((TEXT, TEXT, NUMBERED, INDEXED)))

    def _value(self, table: str) -> dict[str, str]:
        if table == NUMBERED:
            return {"N": str(self._random.randint(-30, 30))}
        return {"S": "".join(self._random.choices(LETTERS, k=self._random.choice((1, 1, 2, 2, 3))))}

    def _key(self, table: str) -> dict[str, Any]:
        return {"batch_id": {"N": self._random.choice(PARTITIONS)}, "part": self._value(table)}

    def _item(self, table: str) -> dict[str, Any]:
        size = self._random.choice((1, 1, 1, 1, 150_000))
        return {**self._key(table), "colour": {"S": self._random.choice("rgb")}, "load": {"S": "x" * size}}

    def _write(self, table: str) -> tuple[str, dict[str, Any]]:
        one = self._random
        put = {"TableName": table, "Item": self._item(table)}
        delete = {"TableName": table, "Key": self._key(table)}
        update = {
            "TableName": table,
            "Key": self._key(table),
            "UpdateExpression": "SET colour = :c",
            "ExpressionAttributeValues": {":c": {"S": one.choice("rgb")}},
        }
        match one.randrange(6):
            case 0 | 1:
                return "_put_item", put
            case 2:
                return "_delete_item", delete
            case 3:
                return "_update_item", update
            case 4:
                return "_transact_write_items", {
                    "TransactItems": [{"Put": put}, {"Delete": delete}, {"Update": update}]
                }
            case _:
                puts = [{"PutRequest": {"Item": self._item(table)}} for _ in range(3)]
                return "_batch_write_item", {
                    "RequestItems": {table: [*puts, {"DeleteRequest": {"Key": self._key(table)}}]}
                }

    def _replace(self, _: str) -> tuple[str, dict[str, Any]]:
        """A transaction that fails in its middle, so that all rows are replaced by a copy."""
        insert = f"INSERT INTO \"{TEXT}\" VALUE {{'batch_id': ?, 'part': ?, 'load': ?}}"
        delete = f'DELETE FROM "{TEXT}" WHERE batch_id = ? AND part = ?'  # noqa: S608
        key = self._key(TEXT)
        return "_execute_transaction", {
            "TransactStatements": [
                {"Statement": insert, "Parameters": [*self._key(TEXT).values(), {"S": "new"}]},
                {"Statement": insert, "Parameters": [*key.values(), {"S": "a"}]},
                {"Statement": delete, "Parameters": [*self._key(TEXT).values()]},
            ]
        }

    def _query(self, table: str) -> tuple[str, dict[str, Any]]:
        one = self._random
        if one.random() < 0.15:
            return "_query", self._wrong(table)
        names = one.choice((("batch_id", "part"), ("#b", "#p")))
        values = {":b": {"N": one.choice((*PARTITIONS, "7"))}}
        clauses = [f"{names[0]} = :b", *self._sort_condition(table, names[1], values)]
        if one.random() < 0.1:
            clauses.reverse()
        condition = " AND ".join(clauses)
        request: dict[str, Any] = {
            "TableName": table,
            "KeyConditionExpression": f"({condition})" if one.random() < 0.3 else condition,
            "ExpressionAttributeValues": values,
            **self._options(table, values[":b"]),
        }
        if "#b" in condition:
            aliases = {"#b": "batch_id", "#p": "part"}
            request["ExpressionAttributeNames"] = {
                alias: name for alias, name in aliases.items() if alias in condition
            }
        if one.random() < 0.3:
            request |= {"FilterExpression": "colour = :c"}
            values[":c"] = {"S": one.choice("rgb")}
        if table == INDEXED and one.random() < 0.3:
            return "_query", {
                "TableName": table,
                "IndexName": "by-colour",
                "KeyConditionExpression": "colour = :c",
                "ExpressionAttributeValues": {":c": {"S": one.choice("rgb")}},
                "Limit": 5,
            }
        return "_query", request

    def _sort_condition(self, table: str, name: str, values: dict[str, Any]) -> list[str]:
        """A condition on the sort key, or none; its operands are added to the values."""
        one = self._random
        low, high = self._value(table), self._value(table)
        match one.randrange(6):
            case 0 | 1:
                return []
            case 2:
                values[":low"] = {"S": one.choice(LETTERS)} if table != NUMBERED else low
                return [f"begins_with({name}, :low)"]
            case 3:
                if table != NUMBERED and one.random() < 0.8:
                    low, high = sorted((low, high), key=lambda value: value["S"])
                values |= {":low": low, ":high": high}
                return [f"{name} BETWEEN :low AND :high"]
            case _:
                values[":low"] = low
                return [f"{name} {one.choice(OPERATORS)} :low"]

    def _options(self, table: str, batch_id: dict[str, str]) -> dict[str, Any]:
        one = self._random
        options: dict[str, Any] = {}
        if one.random() < 0.7:
            options["Limit"] = one.choice((1, 2, 3, 7, 7, 30, 1_000, 0))
        if one.random() < 0.5:
            options["ScanIndexForward"] = one.choice((True, False, False))
        if one.random() < 0.4:
            options["ExclusiveStartKey"] = {**self._key(table), "batch_id": batch_id}
        if one.random() < 0.05:
            options["ExclusiveStartKey"] = one.choice((self._key(table), {"batch_id": batch_id}))
        if one.random() < 0.2:
            options |= one.choice(({"Select": "COUNT"}, {"ProjectionExpression": "part"}))
        return options

    def _wrong(self, table: str) -> dict[str, Any]:
        """A query that is refused, or that says the same in an unusual way."""
        one = self._random
        values: dict[str, Any] = {":b": {"N": one.choice(PARTITIONS)}, ":s": self._value(table)}
        condition = one.choice(WRONG)
        options = self._options(table, values[":b"])
        if ":s" not in condition:
            del values[":s"]
        if ":b" not in condition:
            del values[":b"]
        if one.random() < 0.1:
            values = {name: {"SS": ["x"]} for name in values}
        return {
            "TableName": one.choice((table, table, table, "not-there")),
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            **options,
        }
