"""The fan-out job in rows per second, compared with two jobs that send the same bodies and track nothing.

One is what most people write: `foreachPartition` with a client of boto3. The other is the fastest there is:
Arrow, and as many threads as the fan-out. Neither sends an attribute, so that the emulator makes no digest.
"""

import os
import uuid
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
import pyarrow as pa
from botocore.config import Config
from pyspark.sql import DataFrame, Row, SparkSession

from bench.comparison import Strategy, compared
from bench.figures import Figure
from fanin.domain.limits import chunks
from fanin.local import down, environment, up
from fanin.spark.fanout.bodies import BODY, of_rows
from fanin.spark.fanout.driver import fan_out
from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.opening import open_input
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import session

ROWS = 100_000
TURNS = 6
WARM = 1_000
WORKERS = 8


def rows_a_second() -> list[Figure]:
    """Send a dataset tracked and plain, in turns."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        try:
            os.environ.update(environment(up(root)))
            return _measured(session("bench"), root)
        finally:
            down(root)


def _measured(spark: SparkSession, root: Path) -> list[Figure]:
    service = Service.from_env()
    ways = {"foreachPartition": _for_each_partition, "threads": _threads, "tracked": _tracked}
    datasets = {rows: Dataset(str(root / f"rows-{rows}")) for rows in (WARM, ROWS)}
    for rows, dataset in datasets.items():
        _rows(spark, rows).write.parquet(dataset.place)

    def runs(rows: int) -> dict[str, Strategy]:
        return {name: partial(way, spark, service, datasets[rows], root, rows) for name, way in ways.items()}

    took = compared(runs(ROWS), warm_up=runs(WARM), times=10, turns=TURNS)
    plain, threads, tracked = took.values()
    load = f"{ROWS:,} rows, SQS of the emulator, load {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores"
    name = "fan-out on Spark: rows a second, tracked, to a plain foreachPartition"
    return [
        tracked.faster_than(plain, name, at_least=0.9, note=load, in_turns=True),
        tracked.faster_than(threads, "the same, to Arrow and threads", at_least=0.85, in_turns=True),
        Figure("the same, rows a second, tracked", ROWS / tracked.best),
        Figure("the same, rows a second, foreachPartition", ROWS / plain.best),
        Figure("the same, rows a second, Arrow and threads", ROWS / threads.best),
    ]


def _rows(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 2).selectExpr("id", "sha2(string(id), 256) AS name", "id % 97 AS kind")


def _tracked(_spark: SparkSession, service: Service, dataset: Dataset, root: Path, rows: int) -> None:
    folder = str(root / uuid.uuid4().hex)
    told = fan_out(dataset, service, queue=_queue(), staging=folder, workers=WORKERS)
    if (told.sent, told.state) != (rows, "closed"):
        raise AssertionError(told)


def _for_each_partition(
    spark: SparkSession, service: Service, dataset: Dataset, _root: Path, rows: int
) -> None:
    """What people write without fanin: a client of boto3 for each task, bodies in tens."""
    queue, sent = _queue(), spark.sparkContext.accumulator(0)

    def task(bodies: Iterable[Row]) -> None:
        os.environ.update(service.environment)
        sqs = boto3.client("sqs")
        for ten in chunks(bodies, max_items=10):
            sent.add(_send(sqs, queue, [row[0] for row in ten]))

    _bodies(spark, dataset).foreachPartition(task)
    if sent.value != rows:
        raise AssertionError(sent)


def _threads(spark: SparkSession, service: Service, dataset: Dataset, root: Path, rows: int) -> None:
    """The fastest there is: pages of Arrow, as many threads as the job, each with a connection."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    queue = _queue()

    def task(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.environ.update(service.environment)
        send = partial(_send, boto3.client("sqs", config=Config(max_pool_connections=WORKERS)), queue)
        with ThreadPoolExecutor(WORKERS) as pool:
            tens = (chunks(page.column(0).to_pylist(), max_items=10) for page in pages)
            sent = sum(sum(pool.map(send, page)) for page in tens)
        yield pa.RecordBatch.from_pydict({"sent": [sent]})

    path = str(root / uuid.uuid4().hex)
    _bodies(spark, dataset).mapInArrow(task, "sent long").write.parquet(path)
    (row,) = spark.read.parquet(path).agg({"sent": "sum"}).collect()
    if row[0] != rows:
        raise AssertionError(row)


def _bodies(spark: SparkSession, dataset: Dataset) -> DataFrame:
    opened = open_input(spark, dataset, fields=[])
    return of_rows(opened.rows, format_=opened.format).select(BODY)


def _send(sqs: Any, queue: str, bodies: list[str]) -> int:
    entries = [{"Id": str(i), "MessageBody": body} for i, body in enumerate(bodies)]
    answer = sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    return len(entries) - len(answer.get("Failed", []))


def _queue() -> str:
    return boto3.client("sqs").create_queue(QueueName=f"bench-{uuid.uuid4().hex}")["QueueUrl"]
