"""The stack, as the tasks of a job reach it."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fanin.domain.batch import OpenBatch
from fanin.errors import NotConfigured
from fanin.spark.runtime.service import Service


def test_tasks_reach_the_stack_that_the_driver_names(spark: SparkSession, service: Service) -> None:
    # Given a batch that the driver opened
    batch = service.ledger().open(OpenBatch(user_key="from the driver"))

    # When a task, which is another process, reads it
    def read(pages: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for page in pages:
            keys = [
                service.ledger().status(batch_id).batch.user_key
                for (batch_id,) in zip(page.column(0).to_pylist())
            ]
            yield pa.RecordBatch.from_pydict({"user_key": keys})

    answer = spark.createDataFrame([(batch.batch_id,)], "batch_id long").mapInArrow(read, "user_key string")

    # Then it finds what the driver wrote
    assert [row["user_key"] for row in answer.collect()] == ["from the driver"]


def test_credentials_do_not_travel() -> None:
    # Given an environment with keys
    environment = {
        "FANIN_BATCHES_TABLE": "b",
        "FANIN_WORDS_TABLE": "w",
        "FANIN_PARTS_TABLE": "p",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-west-1",
    }

    # When the tasks are told of the stack
    told = dict(Service.from_env(environment).environment)

    # Then they learn region and tables, and no key
    assert told == {name: value for name, value in environment.items() if name != "AWS_SECRET_ACCESS_KEY"}


def test_an_environment_that_names_no_table_is_refused() -> None:
    # Given only an API, when a job starts, then it says which variable is missing
    with pytest.raises(NotConfigured, match="FANIN_BATCHES_TABLE"):
        Service.from_env({"FANIN_API_URL": "https://example.org"})
