"""What fanin does in a session of Spark Connect, as JSON; a process of its own, without Java.

SPARK_REMOTE=sc://HOST:PORT python -m tests.spark.connect_client FOLDER BATCH_TO_ASK ITEM BATCH_TO_FILL QUEUE
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fanin.errors import FaninError
from fanin.spark import Service, ack_stream, acknowledge, fan_out, forecast, outcomes, register, with_body


def refusal(call: Callable[[], object]) -> str | None:
    """The code of the error that a call of fanin raises and its text."""
    try:
        call()
    except FaninError as error:
        return f"{error.code}: {error}"
    return None


def main(folder: str, batch_id: str, item: str, to_fill: str, queue: str) -> dict[str, Any]:
    spark = SparkSession.builder.getOrCreate()
    service, work = Service.from_env(), f"{folder}/work"
    rows = spark.createDataFrame([(item,)], "item string")
    pq.write_table(pa.table({"n": [1]}), f"{folder}/rows.parquet")
    register(spark, service)
    filled = with_body(spark.range(3)).write.format("fanin").options(batch=to_fill, queue=queue)
    filled.mode("append").save()
    told = outcomes(spark.range(3).selectExpr("id AS ordinal"), service, batch_id=int(batch_id))
    return {
        "module": type(spark).__module__,
        "refused": {
            "acknowledge": refusal(lambda: acknowledge(rows, service, work=work)),
            "forecast": refusal(lambda: forecast(rows, service, work=work)),
            "ack_stream": refusal(lambda: ack_stream(service, work=work)(rows, 0)),
            "fan_out": refusal(lambda: fan_out(rows, queue=queue, staging=f"{folder}/staging")),
        },
        "written": sorted(path.name for path in Path(folder).iterdir()),
        "outcomes": sorted((row["ordinal"], row["outcome"]) for row in told.collect()),
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))  # noqa: T201
