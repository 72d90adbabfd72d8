"""What is refused before Spark is asked for anything; a run itself is tested on Spark."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.ack.driver import acknowledge, forecast

NOTHING: Any = None
"""Rows and a stack that must not be touched."""


@pytest.mark.parametrize(
    "wrong",
    [{"writers": 0}, *({"max_writes_per_second": rate} for rate in (0.5, float("nan"), float("inf")))],
)
def test_writers_and_rates_that_mean_nothing_are_refused_before_anything_is_read(
    wrong: dict[str, Any],
) -> None:
    with pytest.raises(InvalidRequest, match=r"at least 1, and (is|are)"):
        acknowledge(NOTHING, NOTHING, work="/nowhere", **wrong)
    if "writers" not in wrong:
        with pytest.raises(InvalidRequest, match="None sets no limit"):
            forecast(NOTHING, NOTHING, work="/nowhere", **wrong)
