"""Datasets that tests write, and what the opener makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fanin.spark.inputs.formats import DatasetFormat, Dialect
from fanin.spark.inputs.opening import Input, open_input
from fanin.spark.runtime.unreadable import LINE, PROBLEM

FIELDS = ["item", "reason"]


def opened(spark: SparkSession, path: object, format_: str | None = None, **dialect: Any) -> list[Any]:
    """Item and reason of all rows that can be read, and the text of the others; sorted."""
    given = Input(str(path), DatasetFormat(format_) if format_ else None, Dialect(**dialect))
    rows = open_input(spark, given, fields=FIELDS).rows
    names = {name.lower(): name for name in rows.columns}
    picked = [F.col(names[name]) if name in names else F.lit(None) for name in FIELDS]
    found = rows.select(*picked, LINE, PROBLEM).collect()
    assert all((row[2] is None) == (row[3] is None) for row in found)
    return sorted((tuple(row[:2]) if row[2] is None else row[2] for row in found), key=str)


def parquet(file: Path, **columns: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)
