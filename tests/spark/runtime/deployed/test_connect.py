"""A session of Spark Connect: what works in one works, and the rest is refused before anything is written."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from fanin.domain.batch import OpenBatch, State
from tests.spark.consuming import new_queue, waiting
from tests.spark.items import filled

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def remote(spark: SparkSession) -> Iterator[str]:
    """The address of a server of Connect, which the session of the tests is until the test ends."""
    service = getattr(spark._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    server = getattr(service, "MODULE$")
    server.start(spark.sparkContext._jsc.sc())
    yield f"sc://127.0.0.1:{server.localPort()}"
    nothing = spark._jvm.scala.Option.empty()
    server.stop(nothing, nothing)


@pytest.mark.skipif(pyspark.__version__ < "4", reason="the package of Spark 3.5 has no server of Connect")
def test_a_client_of_connect_asks_and_writes_and_is_told_what_it_cannot_do(service, remote, tmp_path):
    # Given a batch of which one item is done, one to be filled, and a server
    asked, group = filled(service)
    service.ledger().mark([group[1]]).whole()
    to_fill, queue = service.ledger().open(OpenBatch(user_key="connect")).batch_id, new_queue()
    # When a client calls each function of fanin
    words = [str(tmp_path), str(asked.batch_id), group[0], str(to_fill), queue]
    command = [sys.executable, "-m", "tests.spark.connect_client", *words]
    around = {**os.environ, "SPARK_REMOTE": remote}
    done = subprocess.run(command, cwd=ROOT, env=around, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    # Then it reads outcomes, and its DataFrame is on the queue as the items of the batch
    assert told["module"].startswith("pyspark.sql.connect")
    assert told["outcomes"] == [[0, "pending"], [1, "done"], [2, "pending"]]
    row = service.ledger().status(to_fill).batch
    assert (row.state, row.items, waiting(queue)) == (State.CLOSED, 3, 3)
    # And what needs a Spark context says so by its name, and wrote nothing
    for name, text in told["refused"].items():
        assert text is not None, name
        assert text.startswith(f"invalid-request: {name} was called with a session of Spark Connect")
    assert told["written"] == ["rows.parquet"]
    assert service.ledger().pending(asked.batch_id, 0, 3) == {0, 2}
