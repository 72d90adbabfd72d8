"""Acknowledgements by plain SQL: aggregated to words in Spark, before any of it comes to Python.

A word is here what SQL knows without asking anybody: 64 items of a group of ids, or of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.domain.ids import Block
from fanin.spark.ack import sql_bits
from fanin.spark.ack.coalescer import TWICE, Coalescer
from fanin.spark.ack.input_schema import PAGES, Form, Records
from fanin.spark.ack.issued import Batches, Refused
from fanin.spark.ack.sql_items import named
from fanin.spark.ack.tasks import Task
from fanin.spark.runtime.rejects import Reason


def pages_of_words(rows: DataFrame, form: Form, batches: Batches) -> DataFrame:
    """``PAGES`` of a DataFrame that ``normal`` gave, with as little Python as can be.

    The input is read once for what is well-formed, once for what is not, and once more if it repeats items.
    """
    told = named(rows, form)
    good = told.where("name IS NOT NULL").select(
        "name", "index", sql_bits.word("index").alias("number"), sql_bits.mask("index").alias("mask")
    )
    words = good.groupBy("name", "number").agg(
        sql_bits.union("mask").alias("mask"), F.count("*").alias("rows")
    )
    pages = words.mapInArrow(_coalesce_words(batches, form), PAGES)
    ragged = words.where("rows > bit_count(mask)").select("name", "number")
    times = (
        good.join(ragged, ["name", "number"], "left_semi")
        .groupBy("name", "index")
        .agg(F.count("*").alias("times"))
    )
    repeats = times.where("times > 1").mapInArrow(_tell_repeats(batches, form), PAGES)
    bad = told.where("name IS NULL")
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


def _coalesce_words(batches: Batches, form: Form) -> Task:
    def run(records: Iterable[Records]) -> Iterator[Records]:
        work = Coalescer(batches, form)
        for record in records:
            if not record.num_rows:
                continue
            names, codes = _coded(record.column("name"))
            masks = record.column("mask").to_numpy().view(np.uint8).reshape(-1, 8)
            row, bit = np.nonzero(np.unpackbits(masks, axis=1, bitorder="little"))
            indices = record.column("number").to_numpy()[row] * 64 + bit
            highest = np.zeros(len(names), np.int64)
            np.maximum.at(highest, codes[row], indices + 1)
            needed = {} if form.ids else dict(zip(names, highest.tolist(), strict=True))
            found = work.blocks(names, needed)

            def show(
                at: Any, names: list[Any] = names, codes: Any = codes[row], indices: Any = indices
            ) -> list[str]:
                pairs = zip(codes[at].tolist(), indices[at].tolist(), strict=True)
                return [form.shown(names[code], index) for code, index in pairs]

            taken = work.take(names, found, codes[row], indices, show)
            yield from work.count(int(record.column("rows").to_numpy().sum()), taken)
        yield from work.finish()

    return run


def _tell_repeats(batches: Batches, form: Form) -> Task:
    """Gives rejects for all but one of the rows of an item; where there is no such item, it says that."""

    def run(records: Iterable[Records]) -> Iterator[Records]:
        work = Coalescer(batches, form)
        for record in records:
            if not record.num_rows:
                continue
            names, codes = _coded(record.column("name"))
            indices, times = (record.column(name).to_pylist() for name in ("index", "times"))
            needed = {} if form.ids else {name: max(indices) + 1 for name in names}
            found = work.blocks(names, needed)
            for code, index, many in zip(codes.tolist(), indices, times, strict=True):
                block = found[code]
                if isinstance(block, Block):
                    inside = 0 <= index < block.size
                    out = Refused(Reason.FOREIGN, f"there are {block.size} items")
                    block = Refused(Reason.DUPLICATE, TWICE) if inside else out
                yield work.rejects([form.shown(names[code], index)] * (many - 1), *block)

    return run


def _coded(names: Any) -> tuple[list[Any], Any]:
    """The names, each once, and of each row which it has."""
    coded = names.dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
