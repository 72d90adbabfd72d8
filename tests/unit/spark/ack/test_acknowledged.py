"""What a run says of itself: its counts and its summary."""

import json

from fanin.spark.ack.acknowledged import Acknowledged
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
