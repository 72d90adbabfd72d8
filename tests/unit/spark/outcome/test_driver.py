"""What is refused before Spark is asked for anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.outcome.driver import outcomes
from fanin.spark.runtime.service import Service


def test_columns_that_name_no_items_are_refused() -> None:
    rows: Any = SimpleNamespace(columns=["order", "value"])
    with pytest.raises(InvalidRequest, match="the input has: order, value"):
        outcomes(rows, Service(()))
