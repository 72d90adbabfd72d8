"""A ledger in memory, and its tables as DynamoDB would export them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from fanin.adapters.dynamodb.rows import SUMS, encode, word_id
from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.words import WordKey
from fanin.domain import limits
from fanin.domain.batch import Batch, OpenBatch
from fanin.domain.ids import Group
from fanin.domain.marks import ItemRange
from fanin.domain.tree import Tree, positions
from fanin.spark.auditing import tables
from fanin.spark.auditing.findings import Audit
from fanin.spark.auditing.tables import line
from tests.spark.export_writer import write_export

FULL = 2**64 - 1
DAY = 86_400_000

Row = dict[str, Any]


def word_row(key: str, word: int | None, expires_at: int, /, **others: Any) -> Row:
    """A row of the words table, with the set of its cleared bits."""
    row: Row = {"word_id": {"S": key}, "expires_at": {"N": str(expires_at)}}
    if word is not None:
        row["word"] = {"N": str(word)}
        if cleared := [str(bit) for bit in positions(word ^ FULL)]:
            row["done"] = {"NS": cleared}
    return {**row, **others}


class Tables:
    """A ledger of 64-bit words, its rows as DynamoDB has them, and what a test does to those behind its back.

    Attributes:
        at: milliseconds; when the tables are exported: so late that nothing is in flux any more.
        batches: rows by batch id.
        words: rows by key.
        left: the batches that the last ``dump`` took, and nobody has changed since.
    """

    def __init__(self) -> None:
        self.memory = Memory(tree=Tree(), clock=FixedClock())
        self.ledger = LedgerService(self.memory.ports(), rows=limits.MAX_ROWS_DIRECT)
        self.at = self.memory.clock.now() + DAY
        self.batches: dict[int, Row] = {}
        self.words: dict[str, Row] = {}
        self.left: frozenset[int] = frozenset()

    def batch(self, items: int, *, closed: bool = True, **request: Any) -> tuple[Batch, Group]:
        row = self.ledger.open(OpenBatch(**request))
        group = self.ledger.add(row.batch_id, items)
        if closed:
            self.ledger.close(row.batch_id)
        return row, group

    def ack(self, group: Group, *ranges: tuple[int, int]) -> None:
        """Mark half-open ranges of a group."""
        for start in range(0, len(ranges), 50):
            some = ranges[start : start + 50]
            self.ledger.mark([ItemRange(group.prefix, first, stop) for first, stop in some]).whole()

    def row(self, batch: Batch) -> Batch:
        return self.memory.batches._rows[batch.batch_id]

    def dump(self) -> None:
        """Take all rows as they are now."""
        for batch in list(self.memory.batches._rows.values()):
            self.dump_batch(batch)
        self.left = frozenset(self.batches)

    def dump_batch(self, batch: Batch) -> None:
        """Take the rows of one batch; a test may change them afterwards."""
        row = self.row(batch)
        self.batches[row.batch_id] = encode(row)
        failed = self.memory.words._failed
        for key, word in self.memory.words._words.items():
            if key.batch_id == row.batch_id:
                others = {"failed": {"N": str(failed[key])}} if key in failed else {}
                others |= self._tallies(key)
                self.words[word_id(key)] = word_row(word_id(key), word, row.expires_at, **others)

    def _tallies(self, key: WordKey) -> Row:
        """What words below, or items, have given to a word, as the store of DynamoDB keeps it."""
        carried = self.memory.words._carried.get(key)
        if carried is None:
            return {}
        below, whole, sums = carried
        numbers = dict(zip(SUMS, sums, strict=False))
        if key.level:
            numbers |= {"failures": below, "carried": whole}
        return {name: {"N": str(number)} for name, number in numbers.items()}

    def set_batch(self, batch: Batch, **changes: Any) -> None:
        """Change a batch's row behind the ledger's back."""
        self.batches[batch.batch_id] = encode(replace(self.row(batch), **changes))

    def words_of(self, batch: Batch) -> set[str]:
        return {key for key in self.words if key.startswith(f"{batch.batch_id}/")}

    def set_word(self, batch: Batch, level: int, number: int, word: int, /, **others: Any) -> str:
        """Put a word behind the ledger's back, and say its key."""
        key = word_id(WordKey(batch.batch_id, level, number))
        self.words[key] = word_row(key, word, self.row(batch).expires_at, **others)
        return key

    def export(self, folder: Path, files: int = 3, *, later: int = 0) -> tuple[Path, Path]:
        """Write both tables as exports of several files, that of the batches so many milliseconds later."""
        made = []
        for name, table, at in (("batches", self.batches, self.at + later), ("words", self.words, self.at)):
            lines = [line(row) for row in table.values()]
            parts = [lines[part::files] for part in range(files)] + [[]]  # an empty partition has a file too
            made.append(write_export(folder, name, parts, at=at))
        return made[0], made[1]

    def snapshot(self, spark: SparkSession, folder: Path) -> Audit:
        """Read the exports as a job does."""
        batches, words = (tables.read_export(spark, str(path)) for path in self.export(folder))
        typed = tables.batches(batches.lines(spark)).persist(), tables.words(words.lines(spark)).persist()
        return Audit(*typed, batches.at, words.at)
