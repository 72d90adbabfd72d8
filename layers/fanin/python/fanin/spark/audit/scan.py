"""Tables read in parallel, a segment to a task, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from fanin.adapters.aws import translated
from fanin.spark.audit.export_writer import line
from fanin.spark.runtime.service import Service

SCHEMA = "value string, source string"


def scan(
    spark: SparkSession, service: Service, table: str, *, segments: int, consistent: bool = True
) -> DataFrame:
    """All rows of a table, as an export would have them.

    Every run of the plan reads the table again, and may find other rows: write them before working on them.

    Args:
        spark: the session.
        service: the stack.
        table: its name.
        segments: tasks, and so parallel readers; a task holds one page of at most a megabyte.
        consistent: read strongly consistent, at twice the price.

    Returns:
        ``value``: a row as a line of DynamoDB JSON; ``source``: its segment.
    """

    def read(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        client = service.connection().client
        for page in pages:
            for segment in page.column(0).to_pylist():
                request: dict[str, Any] = {
                    "TableName": table,
                    "Segment": segment,
                    "TotalSegments": segments,
                    "ConsistentRead": consistent,
                }
                while True:
                    with translated():
                        answer = client.scan(**request)
                    lines = [line(item) for item in answer["Items"]]
                    yield pa.RecordBatch.from_pydict({"value": lines, "source": [str(segment)] * len(lines)})
                    if "LastEvaluatedKey" not in answer:
                        break
                    request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    return spark.range(0, segments, 1, segments).mapInArrow(read, SCHEMA)
