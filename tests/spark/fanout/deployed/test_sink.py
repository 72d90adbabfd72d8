"""``df.write.format("fanin")``: the batch completes with the messages of the attempts that count."""

import json
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fanin.domain.batch import State
from fanin.spark.fanout import bodies
from fanin.spark.runtime.service import Service
from tests.spark import faults
from tests.spark.consuming import consumers, new_queue, waiting
from tests.spark.evaluations import Evaluations

sink = pytest.importorskip("fanin.spark.fanout.sink", reason="Spark before 4.0 has no Python data sources")


@pytest.fixture
def fanin(spark: SparkSession, service: Service) -> Service:
    """The stack, with the format registered for it."""
    sink.register(spark, service)
    return service


def save(frame: Any, batch: object, queue: str, **options: str) -> None:
    frame.write.format("fanin").options(batch=str(batch), queue=queue, **options).mode("append").save()


def numbers(spark: SparkSession, rows: int, partitions: int = 3) -> Any:
    return bodies.with_body(spark.range(0, rows, 1, partitions))


def test_a_frame_becomes_a_batch_that_its_consumers_complete(spark, fanin):
    # Given an open batch
    tracker, queue = fanin.tracker(), new_queue()
    batch = tracker.open().batch_id
    # When a frame is written to it, and consumers work
    with consumers(tracker, queue) as handled:
        save(numbers(spark, 70), batch, queue)
    # Then every row was an item, and all are done
    row = tracker.status(batch).batch
    assert (row.state, row.items) == (State.COMPLETE, 70)
    assert handled.times == {json.dumps({"id": n}, separators=(",", ":")): 1 for n in range(70)}
    assert len(handled.bodies) == 70


def test_items_have_the_keys_of_a_column_and_their_messages_the_batch_as_group(spark, fanin):
    # Given rows with keys, of which one has none
    frame = numbers(spark, 250).withColumn("key", F.expr("if(id = 7, NULL, concat('k ', id))"))
    tracker, queue = fanin.tracker(), new_queue()
    batch = tracker.open().batch_id
    # When they are written, and consumers work
    with consumers(tracker, queue) as handled:
        save(frame, batch, queue, keys="key", fair="true")
    # Then each key is an item that is done, and the row without one has failed
    row = tracker.status(batch).batch
    assert (row.state, row.items, row.failed) == (State.COMPLETE, 250, 1)
    assert len(handled.bodies) == 249
    assert tracker.find_key(batch, "k 249").done


def test_each_row_is_evaluated_once_and_what_is_not_text_has_failed(spark, fanin, tmp_path):
    # Given rows of which one would be another at its next evaluation, and one is not UTF-8
    evaluations = Evaluations(tmp_path / "evaluations")
    rows = evaluations.counted(
        spark.range(0, 6, 1, 2), "id", "text", lambda one, number: f"row {one} {number}"
    )
    latin = F.when(F.col("id") == 4, F.expr("CAST(X'636166e9' AS STRING)")).otherwise(F.col("text"))
    tracker, queue = fanin.tracker(), new_queue()
    batch = tracker.open().batch_id

    with consumers(tracker, queue) as handled:
        save(rows.withColumn("text", latin), batch, queue, body="text")
    # Then each was evaluated once, the others are done, and this one has failed with the reason
    assert set(evaluations.times.values()) == {1}
    assert set(handled.times) == {f"row {n} 0" for n in (0, 1, 2, 3, 5)}
    (failure,) = tracker.iter_failures(batch)
    assert failure.reason == sink._NO_BODY
    assert tracker.status(batch).batch.state is State.COMPLETE


def test_a_write_that_fails_cancels_its_batch(spark, fanin):
    # Given a frame that cannot be evaluated
    batch, queue = fanin.tracker().open().batch_id, new_queue()
    frame = spark.range(1).selectExpr("CAST(raise_error('not today') AS string) AS text")
    # When it is written, then the write fails, nothing is sent, and the batch is cancelled
    with pytest.raises(PySparkException, match="not today"):
        save(frame, batch, queue, body="text")
    assert fanin.tracker().status(batch).batch.state is State.CANCELLED
    assert waiting(queue) == 0


def test_a_task_that_dies_twice_in_the_middle_changes_nothing(spark, service, small_pages, tmp_path):
    # Given tasks of which one dies twice when it has sent some of its messages
    rows, queue, tracker, deaths = 400, new_queue(), service.tracker(), tmp_path / "deaths"
    batch = tracker.open().batch_id
    deaths.mkdir()
    through = faults.at_page(2, str(deaths))

    class FaultyWriter(sink.FaninWriter):
        def write(self, iterator: Any) -> Any:
            return super().write(through(iterator))

    class FaultySource(sink.FaninDataSource):
        def writer(self, schema: Any, overwrite: bool) -> Any:
            return FaultyWriter(**vars(super().writer(schema, overwrite)))

    FaultySource.service = service
    spark.dataSource.register(FaultySource)
    # When they send, and consumers work
    with consumers(tracker, queue) as handled:
        save(numbers(spark, rows, 2), batch, queue)
    # Then it did: there are items of attempts that do not count, and yet the batch is complete
    assert faults.happened(deaths) == faults.dying_of("sending")
    row = tracker.status(batch).batch
    assert row.state is State.COMPLETE
    assert row.items > rows
    assert set(handled.times) == {json.dumps({"id": n}, separators=(",", ":")) for n in range(rows)}
    assert {len(one) for one in handled.bodies.values()} == {1}
