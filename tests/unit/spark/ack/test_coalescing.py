"""What is refused before any row is read; coalescing itself is tested on Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.ack.coalescing import Given, coalesce
from fanin.spark.runtime.reject_limit import ANY
from fanin.spark.runtime.service import Service


def test_a_session_of_spark_connect_is_refused() -> None:
    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    rows: Any = SimpleNamespace(sparkSession=session)
    given = Given(rows, Service(()), "work", None, None, None, None, (), ANY)

    with pytest.raises(InvalidRequest, match="acknowledge was called with a session of Spark Connect"):
        coalesce(given)
