"""Tasks that coalesce the words which SQL aggregated; the SQL itself is tested on Spark."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from fanin.domain.tree import Bits, Tree
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.page_merger import merge_task
from fanin.spark.ack.sql_words import coalesce_words_task, reject_repeats_task
from tests.spark.given import Given, batch, block, rows_of, shuffled

BATCH = batch(7, 5_000)
SOURCE = Given((BATCH,))
BY_ID, BY_ORDINAL = InputSchema(by_id=True), InputSchema(by_id=False)


def words(rows: list[tuple[Any, int, int, int]], kind: pa.DataType) -> pa.RecordBatch:
    """Names, numbers, masks and numbers of rows."""
    names, numbers, masks, counts = zip(*rows, strict=True)
    signed = [mask - (mask >> 63 << 64) for mask in masks]
    types = [kind, pa.int64(), pa.int64(), pa.int64()]
    arrays = [
        pa.array(one, type_) for one, type_ in zip((names, numbers, signed, counts), types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, ["name", "number", "mask", "rows"])


def repeats(rows: list[tuple[Any, int, int]], kind: pa.DataType) -> pa.RecordBatch:
    names, indices, times = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(names, kind), pa.array(indices, pa.int64()), pa.array(times, pa.int64())],
        ["name", "index", "times"],
    )


def marks(pages: list[Any], schema: InputSchema) -> set[Bits]:
    rows = [row for part in shuffled(pages, 1) for row in rows_of(merge_task(SOURCE, schema)(part))]
    return {Bits(row["level"], row["number"], row["mask"] & Tree().full) for row in rows if row["mask"]}


def rejects(pages: list[Any]) -> Counter[tuple[str, str]]:
    return Counter((row["value"], row["reason"]) for row in rows_of(pages) if row["reason"])


def test_words_of_a_group_are_moved_to_where_the_group_begins() -> None:
    # Given a word of a group that begins at item 10, with its items 0 and 63
    group = block(BATCH, 10, 100)
    record = words([(group.prefix, 0, 1 << 63 | 1, 2)], pa.string())

    pages = list(coalesce_words_task(SOURCE, BY_ID)([record]))

    assert marks(pages, BY_ID) == {Bits(0, 0, 1 << 10), Bits(0, 1, 1 << 9)}
    assert sum(row["rows"] or 0 for row in rows_of(pages)) == 2
    assert not rejects(pages)


def test_items_beyond_the_group_or_the_batch_are_rejects() -> None:
    group = block(BATCH, 10, 64)
    by_id = coalesce_words_task(SOURCE, BY_ID)([words([(group.prefix, 1, 0b11, 2)], pa.string())])
    by_ordinal = coalesce_words_task(SOURCE, BY_ORDINAL)(
        [words([(7, 78, 1 << 8 | 1, 2), (8, 0, 1, 1)], pa.int64())]
    )

    assert rejects(list(by_id)) == {
        (f"{group.prefix}:64", "foreign"): 1,
        (f"{group.prefix}:65", "foreign"): 1,
    }
    pages = list(by_ordinal)
    assert rejects(pages) == {
        (BY_ORDINAL.row_json(7, 5_000), "foreign"): 1,
        (BY_ORDINAL.row_json(8, 0), "foreign"): 1,
    }
    assert marks(pages, BY_ORDINAL) == {Bits(0, 78, 1)}


def test_all_rows_of_an_item_but_one_are_rejects() -> None:
    group = block(BATCH, 0, 100)
    record = repeats([(group.prefix, 3, 4), (group.prefix, 100, 2), ("nonsense", 0, 3)], pa.string())

    found = rejects(list(reject_repeats_task(SOURCE, BY_ID)([record])))

    # Where there is no such item, the rejects say so: the row that is left says it too
    assert found == {
        (f"{group.prefix}:3", "duplicate"): 3,
        (f"{group.prefix}:100", "foreign"): 1,
        ("nonsense:0", "malformed"): 2,
    }


def test_empty_pages_from_spark_are_skipped() -> None:
    empty = words([(7, 0, 1, 1)], pa.int64()).slice(0, 0)
    assert [row["rows"] for row in rows_of(coalesce_words_task(SOURCE, BY_ORDINAL)([empty]))] == [0]
    assert list(reject_repeats_task(SOURCE, BY_ORDINAL)([repeats([(7, 0, 2)], pa.int64()).slice(0, 0)])) == []
