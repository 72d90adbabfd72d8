"""The fan-out job in rows per second, compared with jobs that send messages and track nothing.

One of them puts an id on each message, as whoever wants to know of each must; the other sends bodies alone,
which spares the emulator the digest of the attribute.
"""

import os
import uuid
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
import pyarrow as pa
from botocore.config import Config
from pyspark.sql import DataFrame, SparkSession

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
    ways = {"plain": _plain, "with ids": partial(_plain, ids=True), "tracked": _tracked}
    datasets = {rows: Dataset(str(root / f"rows-{rows}")) for rows in (WARM, ROWS)}
    for rows, dataset in datasets.items():
        _rows(spark, rows).write.parquet(dataset.place)

    def runs(rows: int) -> dict[str, Strategy]:
        return {name: partial(way, spark, service, datasets[rows], root, rows) for name, way in ways.items()}

    took = compared(runs(ROWS), warm_up=runs(WARM), times=10, turns=TURNS)
    plain, with_ids, tracked = took.values()
    load = f"{ROWS:,} rows, SQS of the emulator, load {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores"
    name = "fan-out on Spark: rows a second, tracked, to messages with an id"
    return [
        tracked.faster_than(with_ids, name, at_least=0.9, note=load, in_turns=True),
        tracked.faster_than(plain, "the same, tracked, to bodies alone", at_least=0.85, in_turns=True),
        Figure("the same, rows a second, tracked", ROWS / tracked.best),
        Figure("the same, rows a second, messages with an id", ROWS / with_ids.best),
        Figure("the same, rows a second, bodies alone", ROWS / plain.best),
    ]


def _rows(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 2).selectExpr("id", "sha2(string(id), 256) AS name", "id % 97 AS kind")


def _tracked(_spark: SparkSession, service: Service, dataset: Dataset, root: Path, rows: int) -> None:
    folder = str(root / uuid.uuid4().hex)
    told = fan_out(dataset, service, queue=_queue(), staging=folder, workers=WORKERS)
    if (told.sent, told.state) != (rows, "closed"):
        raise AssertionError(told)


def _plain(
    spark: SparkSession, service: Service, dataset: Dataset, root: Path, rows: int, *, ids: bool = False
) -> None:
    """What people write without fanin: bodies in tens, with as many threads; results are kept as well.

    The client is a plain one of boto3, with a connection for every thread.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    queue = _queue()

    def task(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.environ.update(service.environment)
        sqs = boto3.client("sqs", config=Config(max_pool_connections=WORKERS))
        task_id, numbers = uuid.uuid4(), count()

        def attributes() -> dict[str, Any]:
            given = {"id": {"DataType": "String", "StringValue": f"{task_id}:{next(numbers)}"}}
            return {"MessageAttributes": given} if ids else {}

        def request(texts: list[str]) -> int:
            entries = [{"Id": str(i), "MessageBody": text, **attributes()} for i, text in enumerate(texts)]
            answer = sqs.send_message_batch(QueueUrl=queue, Entries=entries)
            return len(entries) - len(answer.get("Failed", []))

        with ThreadPoolExecutor(WORKERS) as pool:
            sent = 0
            for page in given:
                sent += sum(pool.map(request, chunks(page.column(0).to_pylist(), max_items=10)))
        yield pa.RecordBatch.from_pydict({"sent": [sent]})

    opened = open_input(spark, dataset, fields=[])
    messages = of_rows(opened.rows, format_=opened.format).select(BODY)
    path = str(root / uuid.uuid4().hex)
    messages.mapInArrow(task, "sent long").write.parquet(path)
    (row,) = spark.read.parquet(path).agg({"sent": "sum"}).collect()
    if row[0] != rows:
        raise AssertionError(row)


def _queue() -> str:
    return boto3.client("sqs").create_queue(QueueName=f"bench-{uuid.uuid4().hex}")["QueueUrl"]
