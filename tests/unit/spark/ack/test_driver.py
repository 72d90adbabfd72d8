"""Arguments as people give them, or refused before anything is read; a run itself is tested on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fanin.errors import InvalidRequest
from fanin.spark.ack.driver import acknowledge, check_writers, forecast
from fanin.spark.runtime.rejects import RejectLimit
from fanin.spark.runtime.values import whole

NOTHING: Any = None
"""Rows and a stack that must not be touched."""


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"writers": 0}, "writers must be a whole number of at least 1, not 0"),
        ({"writers": 2.5}, "writers must be a whole number"),
        ({"max_writes_per_second": 0.5}, "at least 1, not 0.5; None sets no limit"),
        ({"max_writes_per_second": float("nan")}, "None sets no limit"),
        ({"max_writes_per_second": "fast"}, "None sets no limit"),
        ({"work": ""}, "work must be a path"),
        ({"work": Path("s3://lake/work")}, "a Path has one slash; give the text s3://lake/work"),
        ({"rejects": 7}, "rejects must be a path"),
        ({"batch_id": "seven"}, "batch_id must be a whole number of at least 0, not 'seven'"),
        ({"batch_id": True}, "batch_id must be a whole number"),
        ({"max_rejects": -1}, r"max_rejects, unless it is a text such as '2\.5%', must be a whole number"),
        ({}, r"rows must be a DataFrame, or a Dataset, .* not None"),
    ],
)
def test_arguments_that_mean_nothing_are_refused_before_anything_is_read(
    wrong: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidRequest, match=why):
        acknowledge(NOTHING, NOTHING, **{"work": "/nowhere", **wrong})
    if "writers" not in wrong:
        with pytest.raises(InvalidRequest, match=why):
            forecast(NOTHING, NOTHING, **{"work": "/nowhere", **wrong})


def test_numbers_and_limits_are_taken_as_people_have_them() -> None:
    assert [whole("batch_id", given) for given in (7, "7", np.int64(7))] == [7, 7, 7]
    assert check_writers("3", "4e3") == (3, 4_000.0)
    given = [RejectLimit.of(limit) for limit in (5, "5", np.int32(5), "2.5%", None)]
    assert given == [*[RejectLimit(count=5)] * 3, RejectLimit(share=0.025), RejectLimit()]
