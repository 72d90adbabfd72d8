"""Tasks that read the emulator's S3 themselves, with what Spark has been told of it."""

import io
import os
from collections.abc import Iterator

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from fanin.spark.ack import coalescing
from fanin.spark.ack.driver import acknowledge
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.runtime.service import Service
from tests.spark.items import ITEMS, filled

BUCKET = "lake-of-acks"


@pytest.fixture
def bucket(service: Service) -> Iterator[str]:
    """A bucket; what is in it is deleted after the test."""
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    yield BUCKET
    for found in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        s3.delete_object(Bucket=BUCKET, Key=found["Key"])
    s3.delete_bucket(Bucket=BUCKET)


@pytest.fixture
def s3a(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Endpoint and credentials that only Hadoop's configuration has: the environment has wrong ones."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    given = {
        "fs.s3a.endpoint": os.environ["AWS_ENDPOINT_URL"],
        "fs.s3a.endpoint.region": boto3.client("s3").meta.region_name,
        f"fs.s3a.bucket.{BUCKET}.access.key": "test",
        f"fs.s3a.bucket.{BUCKET}.secret.key": "test",
    }
    for name, value in given.items():
        conf.set(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    yield
    for name in given:
        conf.unset(name)


@pytest.mark.parametrize("where", ["environment", "s3a"])
def test_tasks_read_files_on_s3(spark, service, bucket, where, request):
    # Given item ids in two files on S3
    batch, group = filled(service)
    place, found, s3 = f"s3a://{bucket}/day=1", list[FoundFile](), boto3.client("s3")
    for number, part in enumerate((range(ITEMS // 2), range(ITEMS // 2, ITEMS))):
        file = io.BytesIO()
        pq.write_table(pa.table({"item": [group[n] for n in part]}), file)
        s3.put_object(Bucket=bucket, Key=f"day=1/part-{number}.parquet", Body=file.getvalue())
        found.append(FoundFile(f"{place}/part-{number}.parquet", file.tell(), 0))
    if where == "s3a":
        request.getfixturevalue("s3a")
    # When tasks read them themselves; Spark here has no file system for S3
    opened = spark.createDataFrame([], "item string"), ParquetFiles(found, spark), False
    monkeypatch = request.getfixturevalue("monkeypatch")
    monkeypatch.setattr(coalescing, "_open", lambda *_, **__: opened)
    done = acknowledge(Dataset(place), service, work=request.getfixturevalue("tmp_path") / "work")
    # Then all of their items are done
    assert (done.ok, done.rows) == (True, ITEMS)
    assert not service.ledger().pending(batch.batch_id, 0, ITEMS)
