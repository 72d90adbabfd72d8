"""Records on DynamoDB: one JSON document a row, with a version that every write raises and may check."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.rows import Item, attribute, attributes, plain, update_of
from fanin.app.ports.records import Record, RecordPage, Records
from fanin.app.ports.system import Clock
from fanin.domain.changes import Condition, Test, where

_VALUE = "value"
_VERSION = "version"
_json = partial(json.dumps, separators=(",", ":"))


def decode(row: Item, name_key: str) -> Record:
    """Decode the record of a row, or of an image in a stream record."""
    name, value, version, expires_at = plain(row, (name_key, _VALUE, _VERSION, names.EXPIRES_AT)).values()
    return Record(name, json.loads(value), version, expires_at)


@dataclass(frozen=True)
class DynamoRecords(Records):
    """A ``Records``.

    Attributes:
        table: name of the table.
        namespace_key: name of its partition key.
        name_key: name of its sort key.
        partition: turns a namespace into the value of the partition key, in the parts table a number.
        connection: calls DynamoDB.
        clock: tells which records are past their time to live.
    """

    table: str
    namespace_key: str
    name_key: str
    partition: Callable[[str], int | str]
    connection: Connection
    clock: Clock

    @classmethod
    def of_batches(cls, table: str, connection: Connection, clock: Clock) -> DynamoRecords:
        """Records of the parts table, where namespaces are batch ids."""
        return cls(table, names.BATCH_ID, names.PART, int, connection, clock)

    @classmethod
    def of_directory(cls, table: str, connection: Connection, clock: Clock) -> DynamoRecords:
        """Records of the directory table, whose partition key is ``topic``."""
        return cls(table, names.TOPIC, names.NAME, str, connection, clock)

    def read_all(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], Record]:
        wanted = {(str(self.partition(namespace)), name): (namespace, name) for namespace, name in keys}
        rows = self.connection.read(self.table, [self._key(*key) for key in wanted.values()])
        found: dict[tuple[str, str], Record] = {}
        for row in rows:
            record = self._record(row)
            (partition,) = row[self.namespace_key].values()
            if record.lives(self.clock.now()):
                found[wanted[str(partition), record.name]] = record
        return found

    def page(
        self, namespace: str, *, prefix: str = "", cursor: str | None = None, limit: int = 100
    ) -> RecordPage:
        listing = f"{self.table} {namespace} {prefix}"
        values = {":namespace": attribute(self.partition(namespace))}
        condition, aliases = "#namespace = :namespace", {"#namespace": self.namespace_key}
        if prefix:
            condition += " AND begins_with(#name, :prefix)"
            aliases["#name"] = self.name_key
            values[":prefix"] = attribute(prefix)
        request: dict[str, Any] = {
            "TableName": self.table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": aliases,
            "ExpressionAttributeValues": values,
            "ConsistentRead": True,
            "Limit": limit,
        }
        if cursor is not None:
            request["ExclusiveStartKey"] = self._key(namespace, cursors.decode_name(listing, cursor, prefix))
        rows, last = self.connection.query(request)
        records = [record for record in map(self._record, rows) if record.lives(self.clock.now())]
        after = None if last is None else cursors.encode(listing, last[self.name_key]["S"])
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
            gone = (Test(_VERSION, "=", None), Test(names.EXPIRES_AT, "<=", self.clock.now() // 1000))
            when = self._lives(if_version) if if_version else [gone]
        sets = {_VALUE: _json(value), names.EXPIRES_AT: expires_at}
        request = update_of(self.table, self._key(namespace, name), sets, when)
        request["UpdateExpression"] += ", #version = if_not_exists(#version, :start) + :one"
        request["ExpressionAttributeNames"]["#version"] = _VERSION
        request["ExpressionAttributeValues"] |= {":start": attribute(self.clock.now()), ":one": attribute(1)}
        request["ReturnValues"] = "ALL_NEW"
        done, row = self.connection.update(request)
        record = self._record(row) if row else None
        return (record if record and record.lives(self.clock.now()) else None), done

    def put_all(self, namespace: str, values: Mapping[str, Mapping[str, Any]], *, expires_at: int) -> None:
        rows = (
            self._key(namespace, name)
            | attributes({_VALUE: _json(value), _VERSION: 1, names.EXPIRES_AT: expires_at})
            for name, value in values.items()
        )
        self.connection.put(self.table, rows)

    def delete(self, namespace: str, name: str, *, if_version: int | None = None) -> bool:
        request = update_of(self.table, self._key(namespace, name), {}, self._lives(if_version))
        del request["UpdateExpression"]
        return self.connection.delete(request)

    def _lives(self, version: int | None) -> list[Condition]:
        """A record is there, and has a version if one is given."""
        lives = where(names.EXPIRES_AT, ">", self.clock.now() // 1000)
        return [lives] if version is None else [where(_VERSION, "=", version), lives]

    def _key(self, namespace: str, name: str) -> dict[str, Any]:
        return {self.namespace_key: attribute(self.partition(namespace)), self.name_key: attribute(name)}

    def _record(self, row: Item) -> Record:
        return decode(row, self.name_key)
