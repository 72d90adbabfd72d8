"""Sessions of Spark Connect are refused where they cannot do what is needed, and say where it can be done."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.runtime.session import classic


def test_a_session_of_connect_is_refused() -> None:
    session: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(
        InvalidRequest, match=r"acknowledge was called with a session of Spark Connect.*spark-submit"
    ):
        classic(session, "acknowledge")


def test_any_other_passes() -> None:
    session: Any = object()
    assert classic(session, "acknowledge") is session
