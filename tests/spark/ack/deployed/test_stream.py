"""Acknowledging the micro-batches of a stream on the stack."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from fanin.domain.batch import State
from fanin.spark.ack.stream import ack_stream
from fanin.spark.runtime.service import Service
from tests.spark.items import ITEMS, filled

pytestmark = pytest.mark.emulator


def test_a_stream_may_repeat_an_epoch(spark: SparkSession, service: Service, tmp_path: Path) -> None:
    # Given a stream of ordinals in two micro-batches, of which the handler gets one twice
    batch, _ = filled(service)
    told = []
    handler = ack_stream(
        service,
        work=str(tmp_path / "work"),
        batch_id=batch.batch_id,
        on_done=lambda epoch, done: told.append((epoch, done.first + done.ranged, done.duplicates)),
    )
    (tmp_path / "in").mkdir()
    for name, numbers in (("a", range(5_000)), ("b", range(4_990, ITEMS))):
        pq.write_table(pa.table({"ordinal": pa.array(numbers)}), tmp_path / "in" / f"{name}.parquet")
    stream = (
        spark.readStream.schema("ordinal long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    )

    query = stream.writeStream.foreachBatch(handler).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    handler(spark.read.parquet(str(tmp_path / "in" / "b.parquet")), 1)

    # Then all is done, and the repeat did nothing
    assert [epoch for epoch, _, _ in told] == [0, 1, 1]
    assert told[2][1:] == (0, ITEMS - 4_990)
    assert service.ledger().status(batch.batch_id).batch.state is State.COMPLETE
