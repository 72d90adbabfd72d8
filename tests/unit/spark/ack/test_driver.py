"""What a run says of itself; the run is tested on Spark."""

import json
from typing import Any

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.ack.driver import Acknowledged, acknowledge, forecast
from fanin.spark.ack.strategy import Strategy


def done(**changes: int) -> Acknowledged:
    values = {"rows": 12, "distinct": 8, "failed": 1, "rejects": {"null": 2, "duplicate": 1}, **changes}
    return Acknowledged(strategy=Strategy.SQL, **values)


def test_a_run_is_well_if_every_row_is_accounted_for() -> None:
    assert done().ok
    assert not done(rows=13).ok


def test_the_summary_is_json_with_acks_for_each_write() -> None:
    summary = json.loads(json.dumps(done(writes=4, completed=1).summary()))
    assert (summary["ok"], summary["acks_per_write"], summary["completed"]) == (True, 2.25, 1)
    assert summary["strategy"] == summary["way"] == "sql"


def test_a_run_that_wrote_nothing_has_no_acks_per_write() -> None:
    assert done().summary()["acks_per_write"] is None


NOTHING: Any = None
"""Rows and a stack that must not be touched."""


@pytest.mark.parametrize(
    "wrong",
    [
        {"writers": 0},
        {"writers": -1},
        *({"max_writes_per_second": rate} for rate in (0, -5, 0.5, float("nan"), float("inf"))),
    ],
)
def test_writers_and_rates_that_mean_nothing_are_refused_before_anything_is_read(
    wrong: dict[str, Any],
) -> None:
    with pytest.raises(InvalidRequest, match=r"at least 1, and (is|are)"):
        acknowledge(NOTHING, NOTHING, work="/nowhere", **wrong)
    if "writers" not in wrong:
        with pytest.raises(InvalidRequest, match="None sets no limit"):
            forecast(NOTHING, NOTHING, work="/nowhere", **wrong)
