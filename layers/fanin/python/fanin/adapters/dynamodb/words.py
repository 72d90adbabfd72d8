"""Words on DynamoDB: bits are cleared by one conditional write, without a read.

A row keeps the word and the set of its cleared bits. The update subtracts the mask, on condition that the set
contains none of its bits. So writers that clear different bits never make each other fail, and a writer that
meets a cleared bit learns from the old row which bits remain to be cleared.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from fanin import names
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.rows import word_id, word_key
from fanin.app.ports.words import Claim, Claimed, Clear, Cleared, Outcome, WordKey
from fanin.domain.tree import Tree, positions
from fanin.errors import ServiceUnavailable

_LEASE: Final = "l{}"
"""Attribute of the lease on a bit, in seconds; its name is short to keep a row with 64 leases under 1 KB."""


class DynamoWords:
    """A ``WordStore``.

    Args:
        table: name of the words table.
        connection: calls DynamoDB.
        tree: the shape; its width is that of a word.
    """

    def __init__(self, table: str, connection: Connection, tree: Tree | None = None) -> None:
        self._table = table
        self._connection = connection
        self._full = (tree or Tree()).full

    def claim(self, claims: Sequence[Claim]) -> list[Claimed]:
        return self._connection.parallel.map(self._claim, claims)

    def _claim(self, claim: Claim) -> Claimed:
        lease = _LEASE.format(claim.position)
        done, row = self._connection.update(
            {
                "TableName": self._table,
                "Key": {names.WORD_ID: {"S": word_id(claim.key)}},
                "UpdateExpression": f"SET {lease} = :until, expires_at = :ttl",
                "ConditionExpression": "NOT contains(done, :bit)"
                f" AND (attribute_not_exists({lease}) OR {lease} <= :now)",
                "ExpressionAttributeValues": {
                    ":bit": {"N": str(claim.position)},
                    ":now": {"N": str(claim.now)},
                    ":until": {"N": str(claim.until)},
                    ":ttl": {"N": str(claim.expires_at)},
                },
            }
        )
        if done:
            return Claimed(pending=True, until=claim.until, taken=True)
        held = row or {}
        pending = str(claim.position) not in held.get(names.DONE, {}).get("NS", ())
        return Claimed(pending, int(held[lease]["N"]) if pending else 0, taken=False)

    def clear(self, clears: Sequence[Clear]) -> list[Outcome]:
        return self._connection.parallel.attempt(self._clear, clears)

    def _clear(self, clear: Clear) -> Cleared:
        mask = clear.mask
        while True:
            done, row = self._connection.update(self._request(clear, mask))
            word = int(row[names.WORD]["N"]) if row else self._full
            if done:
                return Cleared(word, mask)
            left = mask & word
            if not left:
                return Cleared(word, 0)
            if left == mask:
                raise ServiceUnavailable(
                    f"word {word_id(clear.key)} disagrees with its own set of cleared bits; verify the batch"
                )
            mask = left

    def _request(self, clear: Clear, mask: int) -> dict[str, Any]:
        bits = [str(position) for position in positions(mask)]
        values: dict[str, Any] = {
            ":full": {"N": str(self._full)},
            ":mask": {"N": str(mask)},
            ":ttl": {"N": str(clear.expires_at)},
            ":bits": {"NS": bits},
        }
        untouched = "attribute_not_exists(word)"
        if mask == self._full:  # equivalent to the condition below, and a thirtieth of its length
            condition = f"{untouched} OR word = :full"
        else:
            values[":zero"] = {"N": "0"}
            values |= {f":b{bit}": {"N": bit} for bit in bits}
            pending = [f"NOT contains(done, :b{bit})" for bit in bits]
            condition = " AND ".join([f"({untouched} OR word <> :zero)", *pending])
        sets = "SET word = if_not_exists(word, :full) - :mask, expires_at = :ttl"
        if clear.failed:
            values[":zero"] = {"N": "0"}
            sets += ", failed = if_not_exists(failed, :zero) + :mask"
        return {
            "TableName": self._table,
            "Key": {names.WORD_ID: {"S": word_id(clear.key)}},
            "UpdateExpression": f"{sets} ADD done :bits",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ReturnValues": "UPDATED_NEW",
        }

    def read(self, keys: Collection[WordKey]) -> dict[WordKey, int]:
        return self._read(names.WORD, keys)

    def read_failed(self, keys: Collection[WordKey]) -> dict[WordKey, int]:
        return self._read(names.FAILED, keys)

    def _read(self, attribute: str, keys: Collection[WordKey]) -> dict[WordKey, int]:
        wanted = [{names.WORD_ID: {"S": word_id(key)}} for key in dict.fromkeys(keys)]
        rows = self._connection.read(self._table, wanted, [names.WORD_ID, attribute])
        return {
            word_key(row[names.WORD_ID]["S"]): int(row[attribute]["N"]) for row in rows if attribute in row
        }
