"""Arguments as people give them, or refused before anything is read; a run itself is tested on Spark."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fanin.errors import InvalidRequest
from fanin.spark.ack.driver import acknowledge, check_rate, forecast, share_writes
from fanin.spark.ack.ledger_writes import Acknowledged
from fanin.spark.runtime.rejects import RejectLimit
from fanin.spark.runtime.values import whole

NOTHING: Any = None
"""Rows and a stack that must not be touched."""


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"max_writes_per_second": 0.5}, "at least 1, not 0.5; leave it out for no limit"),
        ({"max_writes_per_second": float("nan")}, "leave it out for no limit"),
        ({"max_writes_per_second": "fast"}, "leave it out for no limit"),
        ({"work": ""}, "work must be a path"),
        ({"work": Path("s3://lake/work")}, "a Path has one slash; give the text s3://lake/work"),
        ({"rejects": 7}, "rejects must be a path"),
        ({"batch_id": "seven"}, "batch_id must be a whole number from 0 to 9,007.*, not 'seven'"),
        ({"batch_id": True}, "batch_id must be a whole number"),
        ({"max_rejects": -1}, r"max_rejects, unless it is a text such as '2\.5%', must be a whole number"),
        ({}, r"rows must be a DataFrame, or a Dataset, .* not None"),
    ],
)
def test_arguments_that_mean_nothing_are_refused_before_anything_is_read(wrong, why):
    with pytest.raises(InvalidRequest, match=why):
        acknowledge(NOTHING, NOTHING, **{"work": "/nowhere", **wrong})
    with pytest.raises(InvalidRequest, match=why):
        forecast(NOTHING, NOTHING, **{"work": "/nowhere", **wrong})


def test_numbers_and_limits_are_taken_as_people_have_them():
    assert [whole("batch_id", given) for given in (7, "7", np.int64(7))] == [7, 7, 7]
    assert check_rate("4e3") == 4_000.0
    given = [RejectLimit.of(limit) for limit in (5, "5", np.int32(5), "2.5%", None)]
    assert given == [*[RejectLimit(count=5)] * 3, RejectLimit(share=0.025), RejectLimit()]


@pytest.mark.parametrize(
    ("words", "most", "tasks"),
    [
        (0, 16, 1),
        (1_000, 16, 1),
        (1_001, 16, 2),
        (16_000, 16, 16),
        (400_000, 16, 16),  # 25,000 each
        (400_001, 16, 17),
        (134_217_728, 16, 5_369),  # each says after a minute what it has done
        (10_000, 4_096, 10),
    ],
)
def test_tasks_follow_the_words(words, most, tasks):
    share = share_writes(words, most, None)
    assert (share.tasks, share.writes_per_second) == (tasks, None)


def test_a_rate_is_divided_among_the_tasks_that_run_at_a_time():
    share = share_writes(1_000_000, 8, 4_000)
    assert (share.tasks, share.writes_per_second) == (40, 500)


def test_a_low_rate_lets_few_tasks_run_and_none_is_too_slow():
    # Given a cluster that could run 4,096 tasks, and 1,000 writes a second: 5 tasks of 200
    share = share_writes(134_217_728, 4_096, 1_000)
    assert (share.tasks, share.writes_per_second) == (5, 200)
    # And a rate that one task can do alone
    share = share_writes(134_217_728, 8, 10)
    assert (share.tasks, share.writes_per_second) == (1, 10)


def test_a_cluster_that_does_not_say_how_far_it_grows_reaches_a_rate_with_few_cores():
    # Given Spark's default, without maxExecutors, on 60 cores
    share = share_writes(134_217_728, 4_096, 10_000)
    assert share.writes_per_second is not None
    assert min(60, share.tasks) * share.writes_per_second == 10_000


def test_failures_have_tasks_of_their_own():
    share = share_writes(1_000_000, 8, None)
    assert [share.tasks_for(failures) for failures in (1, 1_000, 2_500, 1_000_000)] == [1, 1, 3, 8]


@pytest.mark.parametrize("words", [0, 500, 1_000_000])
@pytest.mark.parametrize("rate", [10, 100, 1_000, 100_000])
def test_failures_keep_to_the_rate_of_all_tasks_together(words, rate):
    # Given few words or many, and very many failures
    share = share_writes(words, 8, rate)
    # Then the tasks that fail items at the same time do not exceed the rate
    assert share.writes_per_second is not None
    assert min(8, share.tasks_for(1_000_000)) * share.writes_per_second <= rate


PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "spark" / "ack.md"


def done(**changes: Any) -> Acknowledged:
    values = {"rows": 12, "distinct": 8, "failed": 1, "rejects": {"null": 2, "duplicate": 1}, **changes}
    return Acknowledged(**values)


def test_a_run_is_well_if_every_row_is_accounted_for():
    assert done().ok
    assert not done(rows=13).ok
    assert done(rows=13).summary()["detail"].startswith("13 rows were read, and 12 are accounted for")


def test_the_summary_is_json_with_acks_for_each_write():
    summary = json.loads(json.dumps(done(writes=4, completed=1).summary()))
    assert (summary["ok"], summary["acks_per_write"], summary["completed"]) == (True, 2.25, 1)


def test_a_run_that_wrote_nothing_has_no_acks_per_write():
    assert done().summary()["acks_per_write"] is None


def test_the_page_explains_each_field_of_the_summary():
    # Given the fields of the table, and those that every job adds or that are those of its arguments
    (table,) = re.findall(r"\n## Summary\n\n.*\n\n((?:\|.*\n)+)", PAGE.read_text())
    explained = {name for row in table.splitlines()[2:] for name in re.findall("`(.*?)`", row.split("|")[1])}

    assert explained - {"batch_id", "seconds"} == done(totals={"rows": 1}).summary().keys()
