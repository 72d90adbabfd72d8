"""Records on DynamoDB: one JSON document a row, with a version that every write raises and may check."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.rows import Item, attribute, update_of
from fanin.app.ports.records import Record, RecordPage, Records
from fanin.app.ports.system import Clock
from fanin.domain.changes import Condition, Test, where

_VALUE = "value"
_VERSION = "version"


def decode(row: Item, name_key: str) -> Record:
    """Decode the record of a row, or of an image in a stream record."""
    return Record(
        row[name_key]["S"],
        json.loads(row[_VALUE]["S"]),
        int(row[_VERSION]["N"]),
        int(row[names.EXPIRES_AT]["N"]),
    )


class DynamoRecords(Records):
    """A ``Records``.

    Args:
        table: name of the table.
        namespace_key: name of its partition key.
        name_key: name of its sort key.
        partition: turns a namespace into the value of the partition key, in the parts table a number.
        connection: calls DynamoDB.
        clock: tells which records are past their time to live.
    """

    def __init__(
        self,
        table: str,
        namespace_key: str,
        name_key: str,
        partition: Callable[[str], int | str],
        *,
        connection: Connection,
        clock: Clock,
    ) -> None:
        self._table = table
        self._namespace_key = namespace_key
        self._name_key = name_key
        self._partition = partition
        self._connection = connection
        self._clock = clock

    @classmethod
    def of_batches(cls, table: str, connection: Connection, clock: Clock) -> DynamoRecords:
        """Records of the parts table, where namespaces are batch ids."""
        return cls(table, names.BATCH_ID, names.PART, int, connection=connection, clock=clock)

    @classmethod
    def of_directory(cls, table: str, connection: Connection, clock: Clock) -> DynamoRecords:
        """Records of the directory table, whose partition key is ``topic``."""
        return cls(table, names.TOPIC, names.NAME, str, connection=connection, clock=clock)

    def read_all(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], Record]:
        wanted = {(str(self._partition(namespace)), name): (namespace, name) for namespace, name in keys}
        rows = self._connection.read(self._table, [self._key(*key) for key in wanted.values()])
        found: dict[tuple[str, str], Record] = {}
        for row in rows:
            record = self._record(row)
            (partition,) = row[self._namespace_key].values()
            if record.lives(self._clock.now()):
                found[wanted[str(partition), record.name]] = record
        return found

    def page(
        self, namespace: str, *, prefix: str = "", cursor: str | None = None, limit: int = 100
    ) -> RecordPage:
        listing = f"{self._table} {namespace} {prefix}"
        values = {":namespace": attribute(self._partition(namespace))}
        condition = "#namespace = :namespace"
        aliases = {"#namespace": self._namespace_key}
        if prefix:
            condition += " AND begins_with(#name, :prefix)"
            aliases["#name"] = self._name_key
            values[":prefix"] = attribute(prefix)
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": aliases,
            "ExpressionAttributeValues": values,
            "ConsistentRead": True,
            "Limit": limit,
        }
        if cursor is not None:
            request["ExclusiveStartKey"] = self._key(namespace, cursors.decode_name(listing, cursor, prefix))
        rows, last = self._connection.query(request)
        records = [record for record in map(self._record, rows) if record.lives(self._clock.now())]
        after = None if last is None else cursors.encode_name(listing, last[self._name_key]["S"])
        return RecordPage(records, after)

    def put(
        self,
        namespace: str,
        name: str,
        value: Mapping[str, Any],
        *,
        expires_at: int,
        if_version: int | None = None,
    ) -> tuple[Record | None, bool]:
        when: list[Condition] = []
        if if_version is not None:
            gone = (Test(_VERSION, "=", None), Test(names.EXPIRES_AT, "<=", self._clock.now() // 1000))
            when = self._lives(if_version) if if_version else [gone]
        sets = {_VALUE: json.dumps(value, separators=(",", ":")), names.EXPIRES_AT: expires_at}
        request = update_of(self._table, self._key(namespace, name), sets, when)
        request["UpdateExpression"] += ", #version = if_not_exists(#version, :start) + :one"
        request["ExpressionAttributeNames"]["#version"] = _VERSION
        request["ExpressionAttributeValues"] |= {":start": attribute(self._clock.now()), ":one": attribute(1)}
        request["ReturnValues"] = "ALL_NEW"
        done, row = self._connection.update(request)
        record = self._record(row) if row else None
        return (record if record and record.lives(self._clock.now()) else None), done

    def put_all(self, namespace: str, values: Mapping[str, Mapping[str, Any]], *, expires_at: int) -> None:
        self._connection.put(
            self._table,
            (
                {
                    **self._key(namespace, name),
                    _VALUE: attribute(json.dumps(value, separators=(",", ":"))),
                    _VERSION: attribute(1),
                    names.EXPIRES_AT: attribute(expires_at),
                }
                for name, value in values.items()
            ),
        )

    def delete(self, namespace: str, name: str, *, if_version: int | None = None) -> bool:
        request = update_of(self._table, self._key(namespace, name), {}, self._lives(if_version))
        del request["UpdateExpression"]
        return self._connection.delete(request)

    def _lives(self, version: int | None) -> list[Condition]:
        """A record is there, and has a version if one is given."""
        lives = where(names.EXPIRES_AT, ">", self._clock.now() // 1000)
        return [lives] if version is None else [where(_VERSION, "=", version), lives]

    def _key(self, namespace: str, name: str) -> dict[str, Any]:
        return {self._namespace_key: attribute(self._partition(namespace)), self._name_key: attribute(name)}

    def _record(self, row: Item) -> Record:
        return decode(row, self._name_key)
