"""Acknowledging the micro-batches of a stream on the stack."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession

from fanin.domain.batch import State
from fanin.spark.ack.ledger_writes import Acknowledged
from fanin.spark.ack.stream import ack_stream
from tests.spark.items import ITEMS, filled


def test_a_stream_may_repeat_an_epoch(spark, service, tmp_path):
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


def jobs_of(spark: SparkSession, name: str, work: Callable[[], None]) -> int:
    """How many Spark jobs some work takes."""
    context = spark.sparkContext
    context.setJobGroup(name, name)
    try:
        work()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    return len(context.statusTracker().getJobIdsForGroup(name))


@pytest.mark.usefixtures("as_deployed")
def test_a_small_epoch_takes_one_job_and_leaves_nothing(spark, service, tmp_path):
    # Given a micro-batch of some partitions, with whole words and single items of a batch
    batch, group = filled(service)
    chosen = [*range(4_096), *range(5_000, 6_000, 7)]
    rows = spark.createDataFrame([(group[n],) for n in chosen], "item string").repartition(3).persist()
    rows.count()
    told: list[Acknowledged] = []
    handler = ack_stream(service, work=str(tmp_path / "work"), on_done=lambda epoch, done: told.append(done))
    # When it comes, and comes again
    jobs = [jobs_of(spark, f"small-{turn}", lambda: handler(rows, 4)) for turn in range(2)]
    # Then each took one job, all is marked once, and nothing is left
    assert jobs == [1, 1]
    assert [(done.ok, done.rows, done.distinct) for done in told] == [(True, len(chosen), len(chosen))] * 2
    assert (told[0].first + told[0].ranged, told[1].duplicates + told[1].ranged) == (len(chosen),) * 2
    assert told[1].first == 0
    assert told[0].words == 1 + len({n >> 6 for n in chosen if n >= 5_000})
    assert service.ledger().pending(batch.batch_id, 0, ITEMS) == set(range(ITEMS)) - set(chosen)
    assert not (tmp_path / "work").exists()


def test_an_empty_epoch_does_nothing(spark, service, tmp_path):
    told: list[Acknowledged] = []
    handler = ack_stream(service, work=str(tmp_path / "work"), on_done=lambda epoch, done: told.append(done))
    rows = spark.createDataFrame([], "item string, reason string")

    jobs = jobs_of(spark, "empty", lambda: handler(rows, 0))

    assert jobs <= (1 if pyspark.__version__ >= "4" else 2)  # Spark 3.5 fills a cache to count its partitions
    assert [(done.ok, done.rows, done.writes) for done in told] == [(True, 0, 0)]
    assert not (tmp_path / "work").exists()


def test_other_epochs_go_the_long_way_and_leave_only_rejects(spark, service, tmp_path):
    # Given a micro-batch with a failure, and rows that cannot be acknowledged
    batch, group = filled(service)
    given = [(group[n], None) for n in range(100)]
    given += [(group[100], "no such customer"), (group[1], None), ("x", None)]
    rows = spark.createDataFrame(given, "item string, reason string").repartition(2)
    told: list[Acknowledged] = []
    handler = ack_stream(service, work=str(tmp_path / "work"), on_done=lambda epoch, done: told.append(done))

    handler(rows, 7)
    # Then it is done, and only the rejects are left
    (done,) = told
    assert (done.ok, done.distinct, done.failed) == (True, 100, 1)
    assert [path.name for path in (tmp_path / "work" / "epoch=7").iterdir()] == ["rejects"]
    assert len(service.ledger().pending(batch.batch_id, 0, ITEMS)) == ITEMS - 101


def test_a_small_epoch_writes_its_rejects_as_a_dataset(spark, service, tmp_path):
    # Given a micro-batch with a null, a row that names nothing, one that was not issued and a repeat
    _, group = filled(service)
    folder = tmp_path / "rejects"
    given = [(group[0],), (group[0],), (None,), ("x",), (f"{group.prefix}:{ITEMS}",)]
    told: list[Acknowledged] = []
    handler = ack_stream(
        service,
        work=str(tmp_path / "work"),
        rejects=str(folder),
        on_done=lambda epoch, done: told.append(done),
    )

    handler(spark.createDataFrame(given, "item string"), 3)
    found = {(row.value, row.reason) for row in spark.read.parquet(str(folder / "epoch=3")).collect()}

    assert found == {
        (None, "null"),
        ("x", "malformed"),
        (group[0], "duplicate"),
        (f"{group.prefix}:{ITEMS}", "foreign"),
    }
    assert told[0].rejects == {"null": 1, "malformed": 1, "duplicate": 1, "foreign": 1}
    # When the micro-batch comes again without them, then there are none
    handler(spark.createDataFrame([(group[0],)], "item string"), 3)
    assert not (folder / "epoch=3").exists()
