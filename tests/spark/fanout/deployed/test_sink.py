"""``df.write.format("fanin")``: the batch completes with the messages of the attempts that count."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fanin.client.tracker import Tracker
from fanin.domain.batch import State
from fanin.errors import BatchClosed, InvalidRequest
from fanin.spark.fanout import bodies
from fanin.spark.runtime.service import Service
from tests.spark import faults
from tests.spark.consuming import consumers, new_queue, waiting

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


def test_a_frame_becomes_a_batch_that_its_consumers_complete(spark: SparkSession, fanin: Service) -> None:
    # Given an open batch
    tracker, queue = fanin.tracker(), new_queue()
    batch = tracker.open().batch_id

    # When a frame is written to it, and consumers work
    with consumers(tracker, queue) as handled:
        save(numbers(spark, 200), batch, queue)

    # Then every row was an item, and all are done
    row = tracker.status(batch).batch
    assert (row.state, row.items) == (State.COMPLETE, 200)
    assert handled.times == {json.dumps({"id": n}, separators=(",", ":")): 1 for n in range(200)}
    assert len(handled.bodies) == 200


def test_an_empty_frame_completes_its_batch(spark: SparkSession, fanin: Service) -> None:
    batch = fanin.tracker().open().batch_id

    save(numbers(spark, 0), batch, "https://nowhere")

    assert fanin.tracker().status(batch).batch.state is State.COMPLETE


def test_a_null_is_an_item_that_has_failed(spark: SparkSession, fanin: Service) -> None:
    # Given a frame with nulls among its messages
    tracker, queue = fanin.tracker(), new_queue()
    batch = tracker.open().batch_id
    frame = spark.createDataFrame([("a",), (None,), (None,), ("b",)], "text string").coalesce(1)

    # When it is written, and consumers work
    with consumers(tracker, queue) as handled:
        save(frame, batch, queue, body="text")

    # Then the others are sent, and the batch completes with two failures
    assert set(handled.times) == {"a", "b"}
    row = tracker.wait(batch, timeout=60).batch
    assert (row.state, row.items, row.failed) == (State.COMPLETE, 4, 2)
    reasons = [failure.reason for failure in tracker.iter_failures(batch)]
    assert reasons == ["not sent: the message is null"] * 2


def test_a_write_that_fails_cancels_its_batch(spark: SparkSession, fanin: Service) -> None:
    # Given a frame with a message that no queue takes
    batch, queue = fanin.tracker().open().batch_id, new_queue()
    frame = spark.createDataFrame([("a" * 1_100_000,)], "text string").coalesce(1)

    # When it is written, then the write fails, nothing is sent, and the batch is cancelled
    with pytest.raises(PySparkException, match="a request may have 262144"):
        save(frame, batch, queue, body="text")
    assert fanin.tracker().status(batch).batch.state is State.CANCELLED
    assert waiting(queue) == 0


class TestRefusals:
    """What is refused before anything is sent."""

    @pytest.fixture
    def writer(self, service: Service) -> Any:
        """Makes the writer as Spark does."""

        def make(columns: str = "body string", overwrite: bool = False, **options: object) -> Any:
            source = type("Source", (sink.FaninDataSource,), {"service": service})
            schema = SparkSession.getActiveSession().createDataFrame([], columns).schema
            return source({name: str(value) for name, value in options.items()}).writer(schema, overwrite)

        return make

    @pytest.mark.parametrize(
        ("given_", "message"),
        [
            ({"queue": "q"}, "option batch is missing"),
            ({"batch": 5}, "option queue is missing"),
            ({"batch": "x", "queue": "q"}, "batch id 'x'"),
            ({"batch": 5, "queue": "q", "body": "other"}, "no text column 'other'"),
            ({"batch": 5, "queue": "q", "columns": "body long"}, "no text column 'body'"),
            ({"batch": 5, "queue": "q", "overwrite": True}, "mode append"),
        ],
        ids=str,
    )
    def test_options(self, spark: SparkSession, writer: Any, given_: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidRequest, match=message):
            writer(**given_)

    @pytest.mark.parametrize("spoil", ["items", "closed", "limit", "estimated"])
    def test_batches_that_are_not_new(
        self, spark: SparkSession, service: Service, writer: Any, spoil: str
    ) -> None:
        tracker: Tracker = service.tracker()
        options = {"limit": {"limit": 5}, "estimated": {"mode": "estimated"}}
        batch = tracker.open(**options.get(spoil, {})).batch_id
        if spoil == "items":
            tracker.add(batch, 1)
        if spoil == "closed":
            tracker.close(batch)

        with pytest.raises(InvalidRequest, match="open one for each write"):
            writer(batch=batch, queue="q")

    def test_two_writes_cannot_have_one_batch(
        self, spark: SparkSession, service: Service, writer: Any
    ) -> None:
        # Given two writes that were planned while the batch was new
        batch, queue = service.tracker().open().batch_id, new_queue()
        first, second = writer(batch=batch, queue=queue), writer(batch=batch, queue=queue)
        page = pa.RecordBatch.from_pydict({"body": ["a"]})

        # When the first begins, then the second can neither write, nor commit, nor cancel it
        sent = first.write(iter([page]))
        for step in (lambda: second.write(iter([page])), lambda: second.commit([]), lambda: second.abort([])):
            with pytest.raises(InvalidRequest, match="belongs to another write"):
                step()
        first.commit([sent])
        assert service.tracker().status(batch).batch.state is State.CLOSED

    def test_a_zombie_adds_nothing_after_the_commit(
        self, spark: SparkSession, service: Service, writer: Any
    ) -> None:
        # Given an attempt that has sent one page when another is committed in its place
        tracker, queue = service.tracker(), new_queue()
        batch = tracker.open().batch_id
        first = writer(batch=batch, queue=queue)
        page = pa.RecordBatch.from_pydict({"body": ["a", "b"]})
        winner = first.write(iter([page]))

        def pages() -> Any:
            yield page
            first.commit([winner])
            yield page

        # When it goes on, then it is refused, and the batch waits for the winner's messages alone
        with pytest.raises(BatchClosed):
            first.write(pages())
        progress = tracker.status(batch, exact=True)
        assert (progress.batch.state, progress.batch.items, progress.done_min) == (State.CLOSED, 4, 2)
        assert [(one.start, one.stop) for one in tracker.iter_missing(batch)] == winner_range(winner)

    def test_of_two_attempts_at_once_one_counts(
        self, spark: SparkSession, service: Service, writer: Any
    ) -> None:
        # Given two attempts of a task that send at the same time, as speculation has it
        tracker, queue = service.tracker(), new_queue()
        batch = tracker.open().batch_id
        made = writer(batch=batch, queue=queue)
        pages = [pa.RecordBatch.from_pydict({"body": [f"{n}-{i}" for i in range(20)]}) for n in range(5)]
        with ThreadPoolExecutor(2) as pool:
            _, counts = pool.map(lambda _: made.write(iter(pages)), range(2))

        # When the second is committed, and every message of both is handled
        made.commit([counts])
        missing = [(one.start, one.stop) for one in tracker.iter_missing(batch)]
        with consumers(tracker, queue) as handled:
            pass

        # Then the batch waited for those of the second alone, and is complete
        assert sum(stop - start for start, stop in missing) == 100
        assert [n for span in missing for n in range(*span)] == [
            n for span in winner_range(counts) for n in range(*span)
        ]
        assert tracker.status(batch).batch.state is State.COMPLETE
        assert set(handled.times.values()) == {2}

    def test_a_batch_that_others_cancelled_fails_the_commit(
        self, spark: SparkSession, service: Service, writer: Any
    ) -> None:
        batch = service.tracker().open().batch_id
        made = writer(batch=batch, queue="q")
        service.tracker().cancel(batch)

        with pytest.raises(BatchClosed, match="cancelled while it was written to"):
            made.commit([])


def winner_range(written: Any) -> list[tuple[int, int]]:
    return [(first, first + size) for first, size in written.blocks]


def test_a_task_that_dies_twice_in_the_middle_changes_nothing(
    spark: SparkSession, service: Service, small_pages: None, tmp_path: Path
) -> None:
    # Given tasks of which one dies twice when it has sent some of its messages
    rows, queue, tracker, deaths = 800, new_queue(), service.tracker(), tmp_path / "deaths"
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
        save(numbers(spark, rows, 4), batch, queue)

    # Then it did: there are items of attempts that do not count, and yet the batch is complete
    assert faults.happened(deaths) == faults.dying_of("sending")
    row = tracker.status(batch).batch
    assert row.state is State.COMPLETE
    assert row.items > rows
    assert set(handled.times) == {json.dumps({"id": n}, separators=(",", ":")) for n in range(rows)}
    assert {len(one) for one in handled.bodies.values()} == {1}
