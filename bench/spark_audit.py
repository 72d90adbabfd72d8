"""The audit of an export of many words: its time is linear, and it finds exactly what was planted."""

import random
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession

from bench.figures import Figure
from fanin.adapters.dynamodb.rows import encode
from fanin.domain.batch import Batch, State
from fanin.domain.tree import positions
from fanin.spark.auditing.tables import line
from fanin.spark.jobs.audit import JOB
from fanin.spark.runtime.session import session
from tests.spark.export_writer import write_export

AT = 1_790_000_000_000
EXPIRES = AT // 1000 + 20 * 86_400
USUAL, FULL = 1_000_000, 10_000_000
PARTITIONS = 8
PLANTED = 10_000
"""For each kind of finding, one word in so many is wrong."""

_ALL = 2**64 - 1
_SMALL = 4_096
_ROWS_A_FILE = 200_000
_MASKS = [mask or 1 for mask in map(random.Random(7).getrandbits, [64] * 1_000)]  # noqa: S311


@dataclass
class World:
    """An export of some words, and what an audit must find in it.

    Every second word of a batch is done, the others are done in part, at random. One batch has half of the
    words.

    Attributes:
        words: rows of level 0 to be made.
        done: items done, counted while the rows are made.
        planted: findings by kind, counted likewise.
    """

    words: int
    done: int = 0
    planted: Counter[str] = field(default_factory=Counter)

    def batches(self) -> list[int]:
        """The leaf words of each batch."""
        rest = self.words - self.words // 2
        return [self.words // 2, *[_SMALL] * (rest // _SMALL), *([rest % _SMALL] if rest % _SMALL else [])]

    def write(self, folder: Path) -> tuple[Path, Path]:
        rows = [line(encode(_batch(number, words))) for number, words in enumerate(self.batches(), 1)]
        first = write_export(folder, "batches", [rows], at=AT)
        return first, write_export(folder, "words", self._files(), at=AT)

    def _files(self) -> Iterator[list[str]]:
        held: list[str] = []
        for number, words in enumerate(self.batches(), 1):
            for row in self._rows(number, words):
                held.append(row)
                if len(held) == _ROWS_A_FILE:
                    yield held
                    held = []
        yield held

    def _rows(self, batch_id: int, words: int) -> Iterator[str]:
        values = [_value(mask) for mask in _MASKS]
        counts = [mask.bit_count() for mask in _MASKS]
        tail = f'"expires_at":{{"N":"{EXPIRES}"}}}}}}'
        head = f'{{"Item":{{"word_id":{{"S":"{batch_id}/'
        parent = 0
        for number in range(words):
            whole = number % 3 == 0
            if whole:
                self.done += 64
                value = _DONE
            else:
                self.done += counts[number % 1_000]
                value = values[number % 1_000]
            if number % PLANTED == 1:  # the set has one bit less than the word
                value = _value(_MASKS[number % 1_000], _MASKS[number % 1_000] & (_MASKS[number % 1_000] - 1))
                self.planted["contradiction"] += 1
            lost = whole and number % PLANTED == 6  # the parent does not know
            self.planted["lost_parent"] += lost
            parent |= (whole and not lost) << number % 64
            yield f'{head}0/{number}"}},{value},{tail}'
            if number % 64 == 63 or number == words - 1:
                if parent:
                    yield f'{head}1/{number // 64}"}},{_value(parent)},{tail}'
                parent = 0
        yield f'{head}0/{words + 5}"}},{_value(1)},{tail}'
        self.planted["outside"] += 1


def _value(mask: int, cleared: int | None = None) -> str:
    """The attributes of a word with the bits of a mask cleared."""
    bits = ",".join(f'"{bit}"' for bit in positions(mask if cleared is None else cleared))
    return f'"word":{{"N":"{mask ^ _ALL}"}},"done":{{"NS":[{bits}]}}'


_DONE = _value(_ALL)


def _batch(batch_id: int, words: int) -> Batch:
    return Batch(
        batch_id=batch_id,
        salt=bytes(16),
        created_at=AT - 86_400_000 * 3,
        touched_at=AT - 86_400_000 * 2,
        closed_at=AT - 86_400_000 * 2,
        expires_at=EXPIRES,
        open_idle_ttl=7_200,
        closed_idle_ttl=604_800,
        state=State.CLOSED,
        items=words * 64,
    )


def audited(spark: SparkSession, words: int) -> tuple[float, dict[str, Any], World]:
    """Write an export of so many words, and audit it.

    Returns:
        Seconds of the audit, its summary, and what it must say.
    """
    world = World(words)
    with TemporaryDirectory() as folder:
        batches, rows = world.write(Path(folder))
        options = Namespace(
            batches_export=str(batches),
            words_export=str(rows),
            scan=False,
            output=f"{folder}/audit",
            snapshot=None,
            repair=False,
            confirm=False,
        )
        began = time.perf_counter()
        summary = JOB.run(spark, options)
        return time.perf_counter() - began, summary, world


def wrongly_told(summary: dict[str, Any], world: World) -> int:
    """Count the findings that are missed or invented, and the items that are miscounted."""
    found = Counter(summary["findings"])
    differs = (found - world.planted) + (world.planted - found)
    return differs.total() + abs(summary["done"] - world.done)


def linear(words: int = USUAL) -> list[Figure]:
    """Audit a tenth of so many words, then all of them."""
    spark = session("bench", {"spark.master": "local[2]", "spark.sql.shuffle.partitions": str(PARTITIONS)})
    audited(spark, 10_000)  # compiles the code that the others run
    runs = audited(spark, words // 10), audited(spark, words)
    (small, _, _), (large, summary, _) = runs
    told = sum(wrongly_told(found, world) for _, found, world in runs)
    sizes = f"{words // 10:,} to {words:,}"
    return [
        Figure(f"audit: rows a second, {words:,} words", summary["words"] / large, note="local[2]"),
        Figure("audit: time for ten times the words", large / small, at_most=11, note=sizes),
        Figure("audit: findings missed or invented", told, at_most=0, note="those of both sizes"),
    ]
