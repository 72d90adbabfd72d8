"""What a run says of itself: its counts and its summary."""

import json
import re
from pathlib import Path
from typing import Any

from fanin.spark.ack.ledger_writes import Acknowledged

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
