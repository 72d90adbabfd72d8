"""Acknowledgements in plain SQL: aggregated to words in Spark before anything comes to Python.

A word here is what SQL can work out without reading a batch: 64 items of a group of ids, or of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.domain.ids import Block
from fanin.spark.ack import sql_bits
from fanin.spark.ack.coalescer import REPEATED, Coalescer
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import BatchReader, Refused
from fanin.spark.ack.schemas import PAGES
from fanin.spark.ack.sql_items import split_names
from fanin.spark.ack.tasks import Task
from fanin.spark.runtime.arrow import Records
from fanin.spark.runtime.rejects import Reason


def pages_from_words(rows: DataFrame, schema: InputSchema, batches: BatchReader) -> DataFrame:
    """Make ``PAGES`` of a DataFrame that ``normalize`` gave, with as little Python as possible.

    The input is read once for well-formed rows, once for the others, and once more if it repeats items.
    """
    parsed = split_names(rows, schema)
    good = parsed.where("name IS NOT NULL").select(
        "name", "index", sql_bits.word("index").alias("number"), sql_bits.mask("index").alias("mask")
    )
    words = good.groupBy("name", "number").agg(
        sql_bits.union("mask").alias("mask"), F.count("*").alias("rows")
    )
    pages = words.mapInArrow(coalesce_words_task(batches, schema), PAGES)
    repeated = words.where("rows > bit_count(mask)").select("name", "number")
    times = (
        good.join(repeated, ["name", "number"], "left_semi")
        .groupBy("name", "index")
        .agg(F.count("*").alias("times"))
    )
    repeats = times.where("times > 1").mapInArrow(reject_repeats_task(batches, schema), PAGES)
    bad = parsed.where("name IS NULL")
    reason = F.when(F.col("empty"), Reason.NULL).otherwise(Reason.MALFORMED)
    spread = F.pmod(F.hash("value"), F.lit(1 << 10)).cast("long") * 8
    rejects = bad.select(
        spread.alias("page"), "value", reason.alias("reason"), F.lit("it names no item").alias("detail")
    )
    counted = bad.agg(F.count("*").alias("rows"))
    return (
        pages.unionByName(repeats)
        .unionByName(rejects, allowMissingColumns=True)
        .unionByName(counted, allowMissingColumns=True)
    )


def coalesce_words_task(batches: BatchReader, schema: InputSchema) -> Task:
    """Make the function of a task that coalesces words.

    Returns:
        A function that takes ``name``, ``number``, ``mask`` and ``rows`` of words, and gives rows of
        ``PAGES``.
    """

    def run(records: Iterable[Records]) -> Iterator[Records]:
        coalescer = Coalescer(batches, schema)
        for record in records:
            if not record.num_rows:
                continue
            names, codes = _coded(record.column("name"))
            masks = record.column("mask").to_numpy().view(np.uint8).reshape(-1, 8)
            row, bit = np.nonzero(np.unpackbits(masks, axis=1, bitorder="little"))
            indices = record.column("number").to_numpy()[row] * 64 + bit
            highest = np.zeros(len(names), np.int64)
            np.maximum.at(highest, codes[row], indices)
            pairs = zip(names, highest.tolist(), strict=True)
            needed = {} if schema.by_id else {name: index + 1 for name, index in pairs}
            found = coalescer.blocks(names, needed)

            def show(
                at: Any, names: list[Any] = names, codes: Any = codes[row], indices: Any = indices
            ) -> list[str]:
                pairs = zip(codes[at].tolist(), indices[at].tolist(), strict=True)
                return [schema.show(names[code], index) for code, index in pairs]

            taken = coalescer.take(names, found, codes[row], indices, show)
            yield from coalescer.count(int(record.column("rows").to_numpy().sum()), taken)
        yield from coalescer.finish()

    return run


def reject_repeats_task(batches: BatchReader, schema: InputSchema) -> Task:
    """Make the function of a task that rejects all rows of an item but one.

    Returns:
        A function that takes ``name``, ``index`` and ``times`` of items, and gives rows of ``PAGES``. Where
        there is no such item, the rejects say that instead.
    """

    def run(records: Iterable[Records]) -> Iterator[Records]:
        coalescer = Coalescer(batches, schema)
        for record in records:
            if not record.num_rows:
                continue
            names, codes = _coded(record.column("name"))
            indices, times = (record.column(name).to_pylist() for name in ("index", "times"))
            needed = {} if schema.by_id else {name: max(indices) + 1 for name in names}
            found = coalescer.blocks(names, needed)
            for code, index, count in zip(codes.tolist(), indices, times, strict=True):
                block = found[code]
                if isinstance(block, Block):
                    inside = 0 <= index < block.size
                    out = Refused(Reason.FOREIGN, f"there are {block.size} items")
                    block = Refused(Reason.DUPLICATE, REPEATED) if inside else out
                yield coalescer.rejects([schema.show(names[code], index)] * (count - 1), *block)

    return run


def _coded(names: Any) -> tuple[list[Any], Any]:
    """The names, each once, and for each row the position of its name."""
    coded = names.dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
