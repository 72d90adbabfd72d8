"""Scans tables in parallel: each task reads a segment, a page at a time."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from fanin.spark.auditing.rows import LINES
from fanin.spark.runtime.service import Service


def scan(
    spark: SparkSession, service: Service, table: str, *, segments: int, consistent: bool = True
) -> DataFrame:
    """Read all rows of a table, in the form of an export.

    Whenever the plan runs it reads the table again, and may find other rows. So write them before you work
    on them.

    Args:
        spark: the session.
        service: the stack.
        table: its name.
        segments: tasks, and so parallel readers; a task holds one page of at most a megabyte.
        consistent: use strongly consistent reads, at twice the price.

    Returns:
        ``value``, a row as a line of DynamoDB JSON; ``source``, its segment.
    """
    task = scan_task(service, table, segments=segments, consistent=consistent)
    return spark.range(0, segments, 1, segments).mapInArrow(task, LINES)


def scan_task(
    service: Service, table: str, *, segments: int, consistent: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function of a task that scans segments.

    Returns:
        A function that takes numbers of segments, and gives ``value`` and ``source``.
    """

    def run(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        connection = service.connection()
        for page in pages:
            for segment in page.column(0).to_pylist():
                request: dict[str, Any] = {
                    "TableName": table,
                    "Segment": segment,
                    "TotalSegments": segments,
                    "ConsistentRead": consistent,
                }
                while True:
                    items, after = connection.scan(request)
                    lines = [line(item) for item in items]
                    yield pa.RecordBatch.from_pydict({"value": lines, "source": [str(segment)] * len(lines)})
                    if after is None:
                        break
                    request["ExclusiveStartKey"] = after

    return run


def line(item: Mapping[str, Any]) -> str:
    """A row as a line of an export: DynamoDB's low-level JSON, bytes in base64."""
    return json.dumps({"Item": item}, default=lambda value: base64.b64encode(bytes(value)).decode())
