"""Words on DynamoDB: bits are cleared by one conditional write, without a read.

A row keeps the word and the set of its cleared bits. The update subtracts the mask, on condition that the set
contains none of its bits. So writers that clear different bits never make each other fail, and a writer that
meets a cleared bit learns from the old row which bits remain to be cleared.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from fanin import names
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.rows import SUMS, Item, attributes, word_id, word_key
from fanin.app.ports import words as port
from fanin.domain.tree import Tree, positions
from fanin.errors import ServiceUnavailable

_LEASE: Final = "l{}"
"""Attribute of the lease on a bit, in seconds; its name is short to keep a row with 64 leases under 1 KB."""
_FAILURES: Final = "failures"
"""Attribute of a word above level 0: how many items failed below the words that have given it their tally."""
_CARRIED: Final = "carried"
"""Attribute of a word above level 0, or of a batch with totals: how many bits came with a whole tally."""


class DynamoWords(port.WordStore):
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

    def claim(self, claims: Sequence[port.ItemClaim]) -> list[port.Claimed]:
        return self._connection.parallel.map(self._claim, claims)

    def _claim(self, claim: port.ItemClaim) -> port.Claimed:
        bit, lease = claim.position, _LEASE.format(claim.position)
        done, row = self._connection.update(
            {
                "TableName": self._table,
                "Key": _key(claim.key),
                "UpdateExpression": f"SET {lease} = :until, expires_at = :ttl",
                "ConditionExpression": "NOT contains(done, :bit)"
                f" AND (attribute_not_exists({lease}) OR {lease} <= :now)",
                "ExpressionAttributeValues": attributes(
                    {":bit": bit, ":now": claim.now, ":until": claim.until, ":ttl": claim.expires_at}
                ),
            }
        )
        if done:
            return port.Claimed(pending=True, until=claim.until, taken=True)
        held = row or {}
        pending = str(bit) not in held.get(names.DONE, {}).get("NS", ())
        return port.Claimed(pending, int(held[lease]["N"]) if pending else 0, taken=False)

    def clear(self, clears: Sequence[port.Clear]) -> list[port.Outcome]:
        return self._connection.parallel.attempt(self._clear, clears)

    def _clear(self, clear: port.Clear) -> port.Cleared:
        mask = clear.mask
        while True:
            done, row = self._connection.update(self._request(clear, mask))
            word, tally = self._tallied(clear.key, row or {})
            if done:
                return port.Cleared(word, mask, tally)
            left = mask & word
            if not left:
                return port.Cleared(word, 0, tally)
            if left == mask:
                raise ServiceUnavailable(
                    f"word {word_id(clear.key)} disagrees with its own set of cleared bits; verify the batch"
                )
            mask = left

    def _request(self, clear: port.Clear, mask: int) -> dict[str, Any]:
        bits = [str(position) for position in positions(mask)]
        values = attributes({":full": self._full, ":mask": mask, ":ttl": clear.expires_at})
        values[":bits"] = {"NS": bits}
        untouched = "attribute_not_exists(word)"
        if mask == self._full:  # equivalent to the condition below, and a thirtieth of its length
            condition = f"{untouched} OR word = :full"
        else:
            values[":zero"] = {"N": "0"}
            values |= {f":b{bit}": {"N": bit} for bit in bits}
            pending = [f"NOT contains(done, :b{bit})" for bit in bits]
            condition = " AND ".join([f"({untouched} OR word <> :zero)", *pending])
        sets = "SET word = if_not_exists(word, :full) - :mask, expires_at = :ttl"
        if failed := clear.failed & mask:
            values |= {":zero": {"N": "0"}, ":failed": {"N": str(failed)}}
            sets += ", failed = if_not_exists(failed, :zero) + :failed"
        adds = "ADD done :bits"
        for name, number in _added(clear, mask).items():
            adds += f", {name} :{name}"
            values[f":{name}"] = {"N": str(number)}
        return {
            "TableName": self._table,
            "Key": _key(clear.key),
            "UpdateExpression": f"{sets} {adds}",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ReturnValues": "ALL_NEW",
        }

    def read(self, keys: Collection[port.WordKey]) -> dict[port.WordKey, int]:
        return {key: int(row[names.WORD]["N"]) for key, row in self._read(keys, names.WORD)}

    def read_tallied(self, keys: Collection[port.WordKey]) -> dict[port.WordKey, port.Tallied]:
        found = self._read(keys, names.WORD, names.FAILED, _FAILURES, _CARRIED, *SUMS)
        return {key: self._tallied(key, row) for key, row in found}

    def read_failed(self, keys: Collection[port.WordKey]) -> dict[port.WordKey, int]:
        return {key: int(row[names.FAILED]["N"]) for key, row in self._read(keys, names.FAILED)}

    def read_rows(self, keys: Collection[port.WordKey]) -> dict[port.WordKey, port.WordRow]:
        rows = self._connection.read(self._table, list(map(_key, dict.fromkeys(keys))))
        return {word_key(row[names.WORD_ID]["S"]): self._row(_numbers(row)) for row in rows}

    def _row(self, numbers: Mapping[str, int]) -> port.WordRow:
        names_of_leases = {at: _LEASE.format(at) for at in range(self._full.bit_length())}
        leases = {at: numbers[name] for at, name in names_of_leases.items() if name in numbers}
        return port.WordRow(numbers.get(names.WORD, self._full), numbers.get(names.FAILED, 0), leases)

    def _read(self, keys: Collection[port.WordKey], *attributes: str) -> Iterator[tuple[port.WordKey, Item]]:
        """Read attributes of words; those without the first attribute are left out."""
        wanted = list(map(_key, dict.fromkeys(keys)))
        for row in self._connection.read(self._table, wanted, [names.WORD_ID, *attributes]):
            if attributes[0] in row:
                yield word_key(row[names.WORD_ID]["S"]), row

    def _tallied(self, key: port.WordKey, row: Item) -> port.Tallied:
        numbers = _numbers(row)
        return port.tallied(
            key,
            numbers.get(names.WORD, self._full),
            full=self._full,
            failed=numbers.get(names.FAILED, 0),
            below=numbers.get(_FAILURES, 0),
            whole=numbers.get(_CARRIED, 0),
            sums=tuple([numbers[name] for name in SUMS if name in numbers]),
        )


def _key(key: port.WordKey) -> dict[str, Any]:
    return {names.WORD_ID: {"S": word_id(key)}}


def _numbers(row: Item) -> dict[str, int]:
    return {name: int(value["N"]) for name, value in row.items() if "N" in value}


def _added(clear: port.Clear, mask: int) -> dict[str, int]:
    """What a write of some bits adds to the numbers of its word: attribute → number."""
    added: Counter[str] = Counter()
    for below in (below for at, below in clear.carried.items() if mask >> at & 1):
        if clear.key.level:
            added[_FAILURES] += below.failed
        added[_CARRIED] += below.whole
        added.update(dict(zip(SUMS, below.sums, strict=False)))
    return added
