"""Batches that no stack holds, items of theirs, and what marks of them say; for tests without an emulator."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa

from fanin.domain import ids
from fanin.domain.batch import Batch
from fanin.domain.ids import Block
from fanin.domain.tree import Bits, Tree
from fanin.spark.ack.page_merger import in_order
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.inputs.listing import FoundFile

FAR = 10**10


@dataclass(frozen=True)
class Given:
    """A stack that has only batches, as tasks read them."""

    rows: tuple[Batch, ...]
    at: int = 0

    def read(self, batch_ids: Collection[int]) -> Mapping[int, Batch]:
        return {row.batch_id: row for row in self.rows if row.batch_id in set(batch_ids)}

    def now(self) -> int:
        return self.at

    def ledger(self) -> Any:
        return SimpleNamespace(ports=SimpleNamespace(batches=self, clock=self))


def batch(batch_id: int, items: int, **more: Any) -> Batch:
    row = {"created_at": 0, "touched_at": 0, "expires_at": FAR, "open_idle_ttl": 1, "closed_idle_ttl": 1}
    return Batch(**{"batch_id": batch_id, "salt": bytes(16), "items": items, **row, **more})


def block(row: Batch, first: int, size: int) -> Block:
    return ids.issue(row.batch_id, first, size, row.salt)


def items_of(marks: Iterable[Sequence[Any]]) -> Counter[tuple[int, int]]:
    """Batch and ordinal of all items below marks, which have signed masks."""
    found: Counter[tuple[int, int]] = Counter()
    for batch_id, level, number, mask, *_ in marks:
        for bit in range(64):
            if mask >> bit & 1:
                first = (number * 64 + bit) * 64**level
                found.update((batch_id, ordinal) for ordinal in range(first, first + 64**level))
    return found


def minimal(items: set[int], root: int) -> set[Bits]:
    """The cover by its definition: a word whose bits are all in the set is a bit of the word above."""
    tree, marks, level = Tree(), set[Bits](), 0
    while items:
        words = tree.masks(sorted(items))
        whole = {n for n, mask in words.items() if mask == tree.full and level < root}
        marks |= {Bits(level, n, mask) for n, mask in words.items() if n not in whole}
        items, level = whole, level + 1
    return marks


def rows_of(records: Iterable[Any]) -> list[dict[str, Any]]:
    """The rows of record batches."""
    return [row for record in records for row in record.to_pylist()]


def shuffled(records: list[Any], tasks: int) -> list[list[Any]]:
    """``PAGES`` as the tasks that merge get them: by window, in order, ten rows at a time."""
    parts: dict[int, list[dict[str, Any]]] = {}
    for row in rows_of(records):
        parts.setdefault(hash((row["batch_id"], (row["page"] or 0) >> 3)) % tasks, []).append(row)
    schema = records[0].schema
    for rows in parts.values():
        rows[:] = in_order(rows)
    return [
        [pa.RecordBatch.from_pylist(rows[at : at + 10], schema=schema) for at in range(0, len(rows), 10)]
        for rows in parts.values()
    ]


def parquet_files(folder: Path, *, exact: bool = False) -> ParquetFiles:
    """The Parquet files in a folder, as tasks read them."""
    found = [FoundFile(str(file), file.stat().st_size, 0) for file in sorted(folder.rglob("*.parquet"))]
    return ParquetFiles(found, Mock(**{"conf.get.return_value": str(exact).lower()}))
