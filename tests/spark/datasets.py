"""Datasets that tests write, and what the opener makes of them."""

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.opening import open_input
from fanin.spark.runtime.unreadable import LINE, PROBLEM

FIELDS = ["item", "reason"]


def opened(spark: SparkSession, path: object, format_: str | None = None, **dialect: Any) -> list[Any]:
    """Item and reason of all rows that can be read, and the text of the others; sorted."""
    rows = open_input(spark, Dataset(str(path), format_, **dialect), fields=FIELDS).rows
    names = {name.lower(): name for name in rows.columns}
    picked = [F.col(names[name]) if name in names else F.lit(None) for name in FIELDS]
    found = rows.select(*picked, LINE, PROBLEM).collect()
    assert all((row[2] is None) == (row[3] is None) for row in found)
    return sorted((tuple(row[:2]) if row[2] is None else row[2] for row in found), key=str)


def parquet(file: Path, **columns: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)


def promise(file: Path, *, rows: int, promised: int, column: str = "n") -> None:
    """Write a file of Parquet whose footer promises another number of rows than it has.

    Both numbers take two bytes in the footer: they are from 64 to 8191.
    """
    pq.write_table(pa.table({column: range(rows)}), file, row_group_size=rows // 2)
    content = file.read_bytes()
    (length,) = struct.unpack("<I", content[-8:-4])
    footer = content[-8 - length : -8].replace(_varint(rows), _varint(promised), 1)
    file.write_bytes(content[: -8 - length] + footer + content[-8:])


def _varint(number: int) -> bytes:
    """A number as Thrift's compact protocol has it."""
    return bytes([2 * number & 127 | 128, 2 * number >> 7])


def undecodable(*values: bytes | None) -> Any:
    """A column of text for pyarrow, whose bytes nobody checks, as other programs write it."""
    column = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(values), column.buffers(), null_count=column.null_count)
