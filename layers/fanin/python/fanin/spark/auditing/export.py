"""Reads the tables: exports of DynamoDB to S3, or scans, of which each task reads a segment.

A full export in DynamoDB JSON is a folder ``AWSDynamoDB/<id>/`` with ``manifest-summary.json``,
``manifest-files.json``, one line for each data file, and ``data/*.json.gz``, one line for each row. Only the
files in the manifest are read, and they must have as many rows as the manifest says. The format:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html
"""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from fanin.errors import ExportDamaged
from fanin.spark.auditing.rows import LINES
from fanin.spark.runtime.arrow import ArrowBatches, for_each
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.service import Service

SUMMARY: Final = "manifest-summary.json"
FORMAT: Final = "DYNAMODB_JSON"
FULL: Final = "FULL_EXPORT"


@dataclass(frozen=True)
class Export:
    """One table's export."""

    folder: str  # of its ``manifest-summary.json``: ``s3://…/AWSDynamoDB/<id>``, or a local copy
    at: int  # milliseconds since the epoch; the moment whose rows it has
    files: list[str]  # that have rows
    rows: int  # how many these have

    def lines(self, spark: SparkSession) -> DataFrame:
        """The rows as lines, each a ``value``."""
        if not self.files:
            return spark.createDataFrame([], LINES)
        try:
            return spark.read.text(self.files)
        except AnalysisException as error:
            raise ExportDamaged(
                f"{self.folder} lacks a data file that its manifest names; copy or export it again"
            ) from error

    def check(self, found: int) -> None:
        """Compare the number of rows that were read with the manifest."""
        if found != self.rows:
            raise ExportDamaged(
                f"{self.folder} holds {found} rows, and its manifest says {self.rows}; copy or export it"
                " again"
            )


def read(spark: SparkSession, folder: str) -> Export:
    """Read the manifests of an export, whose folder may be given with the name of its summary."""
    files = Folder(spark, folder.rstrip("/").removesuffix(f"/{SUMMARY}"))
    try:
        return _manifest(files, json.loads(files.read(SUMMARY) or ""))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ExportDamaged(
            f"{files.path} is not a finished export of a table; name the folder AWSDynamoDB/<id> of one"
        ) from error


def _manifest(files: Folder, summary: Mapping[str, Any]) -> Export:
    folder, kind = files.path, summary.get("exportType")
    if summary["outputFormat"] != FORMAT or kind not in {None, FULL}:
        raise ExportDamaged(
            f"{folder} is {kind} as {summary['outputFormat']}; export the table in full, as {FORMAT}"
        )
    root, _, manifest = summary["manifestFilesS3Key"].rpartition("/")
    above = f"/{root.rpartition('/')[2]}/"
    paths, rows = list[str](), 0
    for line in (files.read(manifest) or "").splitlines():
        file = json.loads(line)
        _, found, key = f"/{file['dataFileS3Key']}".rpartition(above)
        if not found:
            raise ExportDamaged(f"{folder}/{manifest} names a data file of another export; export it again")
        if count := int(file["itemCount"]):
            paths.append(f"{folder}/{key}")
            rows += count
    if rows != summary["itemCount"]:
        raise ExportDamaged(
            f"{folder}/{manifest} lists {rows} rows, and the summary {summary['itemCount']}; copy or export"
            " it again"
        )
    at = datetime.fromisoformat(summary["exportTime"])
    return Export(folder, int(at.timestamp() * 1000), paths, rows)


def scan(
    spark: SparkSession, service: Service, table: str, *, segments: int, consistent: bool = True
) -> DataFrame:
    """Read all rows of a table, in the form of an export.

    Whenever the plan runs it reads the table again, and may find other rows. So write them before you work
    on them.
    """

    def pages(segment: int) -> Iterator[ArrowBatches]:
        for lines in read_segment(service, table, segment, segments=segments, consistent=consistent):
            yield pa.RecordBatch.from_pydict({"value": lines})

    return for_each(spark.range(0, segments, 1, segments), pages, LINES)


def read_segment(
    service: Service, table: str, segment: int, *, segments: int, consistent: bool
) -> Iterator[list[str]]:
    """Read a segment of a table, a page at a time, as lines of an export."""
    part = {"Segment": segment, "TotalSegments": segments, "ConsistentRead": consistent}
    connection, start = service.connection(), dict[str, Any]()
    while True:
        items, after = connection.scan({"TableName": table, **part, **start})
        yield [line(item) for item in items]
        if after is None:
            return
        start = {"ExclusiveStartKey": after}


def line(item: Mapping[str, Any]) -> str:
    """A row as a line of an export: DynamoDB's low-level JSON, bytes in base64."""
    return json.dumps({"Item": item}, default=lambda value: base64.b64encode(bytes(value)).decode())
