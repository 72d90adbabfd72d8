"""Parts of batches in memory, read without an access: failures and what belongs to them, results, keys."""

from collections.abc import Iterable, Mapping
from copy import copy

from fanin.adapters.memory import Accesses, Memory, MemoryParts
from fanin.app.ports.parts import FailureRow, KeyRow, Redriven, ResultRow
from fanin.domain.ids import MAX_BATCH_ID

_ALL = 1_000_000


def notes(memory: Memory, batch_id: int) -> dict[int, FailureRow]:
    """The notes of failed items, by ordinal."""
    rows, _ = _apart(memory).failures(batch_id, limit=_ALL)
    return {row.ordinal: row for row in rows}


def message(memory: Memory, batch_id: int, ordinal: int) -> bytes | None:
    return _apart(memory).messages(batch_id, [ordinal]).get(ordinal)


def redriven(memory: Memory, batch_id: int, ordinals: Iterable[int]) -> Mapping[int, Redriven]:
    return _apart(memory).redriven(batch_id, list(ordinals))


def all_redriven(memory: Memory) -> list[Redriven]:
    """Which redrives took failures last, of any batch."""
    places = [
        (partition % (MAX_BATCH_ID + 1), int(part.rpartition("/")[2]))
        for partition, rows in memory.parts._partitions.items()
        for part in rows
        if part.startswith("redriven/")
    ]
    return [one for batch_id, n in places for one in redriven(memory, batch_id, [n]).values()]


def results(memory: Memory, batch_id: int, items: int) -> dict[int, ResultRow]:
    """The results of a batch of so many items, by ordinal."""
    return _apart(memory).results(batch_id, range(items))


def keys(memory: Memory, batch_id: int, items: int) -> dict[int, KeyRow]:
    """The rows of keys of a batch of so many items, by ordinal."""
    apart = _apart(memory)
    names = apart.keys_of(batch_id, range(items))
    return {row.ordinal: row for row in apart.keys(batch_id, list(names.values())).values()}


def _apart(memory: Memory) -> MemoryParts:
    """The same rows, whose reads are neither counted nor interrupted."""
    apart = copy(memory.parts)
    apart._accesses = Accesses()
    return apart
