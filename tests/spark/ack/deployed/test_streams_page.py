"""The snippets of the page on Kafka and Kinesis, run as they stand; only the source's records are ours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.spark.items import ITEMS, filled

ROOT = Path(__file__).resolve().parents[4]
(PAGE,) = (path for path in (ROOT / "docs").rglob("*.md") if path.name == "streams.md")
KAFKA, FAILURES, KINESIS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


class Source:
    """Stands where ``spark.readStream`` does: a source whose records are files of bytes.

    Attributes:
        format_: that was asked for.
    """

    def __init__(self, spark: SparkSession, column: str, folder: Path) -> None:
        self._spark, self._column, self._folder = spark, column, folder
        self.readStream = self

    def format(self, name: str) -> Source:
        self.format_ = name
        return self

    def option(self, _name: str, _value: str) -> Source:
        return self

    def load(self) -> DataFrame:
        return self._spark.readStream.schema(f"{self._column} binary").parquet(str(self._folder))

    def put(self, *records: str) -> None:
        self._folder.mkdir(exist_ok=True)
        table = pa.table({self._column: pa.array([one.encode() for one in records], pa.binary())})
        pq.write_table(table, self._folder / f"{len(list(self._folder.iterdir()))}.parquet")


def run(snippet: str, folder: Path, **names: Any) -> dict[str, Any]:
    """Run a snippet; its folders on S3 are on this machine, and its trigger is due at once."""
    snippet = snippet.replace("s3://lake", str(folder)).replace("30 seconds", "0 seconds")
    exec(compile(snippet, str(PAGE), "exec"), names)
    return names


def test_item_ids_of_kafka_are_acknowledged_and_what_names_nothing_is_a_reject(spark, service, tmp_path):
    # Given records of a topic: two items, and a value that is none
    batch, group = filled(service)
    source = Source(spark, "value", tmp_path / "topic")
    source.put(group[0], group[64], "order 12")
    # When the snippet's query runs
    query = run(KAFKA, tmp_path, spark=source)["query"]
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    # Then the items are done, and the value is among the rejects of its micro-batch
    assert source.format_ == "kafka"
    assert service.ledger().pending(batch.batch_id, 0, ITEMS) == set(range(ITEMS)) - {0, 64}
    rejects = pq.read_table(tmp_path / "stream" / "rejects" / "epoch=0")
    assert rejects["value"].to_pylist() == ["order 12"]


def test_records_of_json_fail_their_items_and_what_is_not_json_is_a_null_item(spark):
    values = ['{"item": "1:a:0"}', '{"item": "1:a:1", "reason": "no such customer"}', "nonsense"]
    records = spark.createDataFrame([(value.encode(),) for value in values], "value binary")

    acks = run(FAILURES, Path(), records=records, F=F)["acks"]

    assert acks.columns == ["item", "reason"]
    assert {tuple(row) for row in acks.collect()} == {
        ("1:a:0", None),
        ("1:a:1", "no such customer"),
        (None, None),
    }


def test_the_data_of_kinesis_are_item_ids(spark, tmp_path):
    source = Source(spark, "data", tmp_path / "stream")
    source.put("1:a:0")

    acks = run(KINESIS, tmp_path, spark=source)["acks"]

    assert source.format_ == "aws-kinesis"
    assert (acks.isStreaming, acks.columns) == (True, ["item"])
