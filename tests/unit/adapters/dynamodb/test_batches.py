"""What DynamoDB is asked for each move of a batch, and what its answers mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.stub import Stubber

from fanin.adapters.dynamodb import DynamoBatches
from fanin.adapters.dynamodb.rows import encode
from fanin.app.ports.batches import Activity, Done
from fanin.domain.batch import LIVE, Cause, State
from tests.unit.adapters.dynamodb.conftest import BATCH, plainly

Asked = list[dict[str, Any]]
Move = Callable[[DynamoBatches], Any]
KEY = {"batch_id": {"N": "11"}}
ACTIVITY = Activity(70, 90)
DONE = Done(5, 1, failed_more=True, totals={"rows": 7, "cents": -2}, totals_exact=True)
TOUCHED = "touched_at = 70, due_at = 90"


@pytest.mark.parametrize(
    ("move", "update", "condition"),
    [
        (
            lambda b: b.allocate(11, 4, activity=None, room=None),
            "ADD items 4",
            "(state = open) AND (items <= 1099511627772) AND (attribute_not_exists(limit))",
        ),
        (
            lambda b: b.allocate(11, 4, activity=ACTIVITY, room=5),
            f"SET {TOUCHED} ADD items 4, pending_bound 4",
            (
                "(state = open) AND (items <= 1099511627772)"
                " AND (attribute_exists(limit) AND pending_bound <= 5)"
            ),
        ),
        (
            lambda b: b.allocate_counted(11, 4, items=6, pending=2, activity=ACTIVITY),
            f"SET items = 10, pending_bound = 6, {TOUCHED}",
            "(state = open) AND (items = 6) AND (attribute_exists(limit))",
        ),
        (lambda b: b.rebound(11, items=6, pending=2), "SET pending_bound = 2", "(items = 6)"),
        (
            lambda b: b.close(11, now=50, activity=ACTIVITY),
            f"SET state = closed, shelf = closed#3, closed_at = 50, {TOUCHED}",
            "(state = open)",
        ),
        (
            lambda b: b.close(11, now=50),
            "SET state = closed, shelf = closed#3, closed_at = 50",
            "(state = open)",
        ),
        (
            lambda b: b.begin(11, 9, now=50, deadline=60, activity=ACTIVITY),
            (
                f"SET state = closed, shelf = closed#3, closed_at = 50, {TOUCHED},"
                " items = 9, deadline = 60, retries = 0"
            ),
            "(state = open) AND (items = 0)",
        ),
        (
            lambda b: b.end(11, State.COMPLETE, now=50, sources=LIVE, partial=True),
            "SET state = complete, shelf = complete#3, ended_at = 50, partial = True",
            "(state IN (open, closed))",
        ),
        (
            lambda b: b.end(11, State.ORPHANED, now=50, sources=[State.OPEN], touched_at=40),
            "SET state = orphaned, shelf = orphaned#3, ended_at = 50, partial = False",
            "(state IN (open)) AND (touched_at = 40)",
        ),
        (
            lambda b: b.postpone(11, deadline=60, until=80, activity=ACTIVITY),
            f"SET deadline = 80, {TOUCHED} ADD retries 1",
            "(state IN (open, closed)) AND (deadline = 60)",
        ),
        (
            lambda b: b.touch(11, ACTIVITY),
            f"SET {TOUCHED}",
            "(state IN (open, closed)) AND (touched_at <= 70)",
        ),
        (
            lambda b: b.count(11, 3, activity=None),
            "ADD acked 3",
            "(state IN (open, closed)) AND (mode = estimated OR kind = scatter)",
        ),
        (
            lambda b: b.expire(11, now=1_790_000_000_999),
            "SET expires_at = 1790000000",
            "(NOT state IN (open, closed)) AND (expires_at > 1790000000)",
        ),
        (
            lambda b: b.end(11, State.CANCELLED, now=50, sources=LIVE, done=DONE, cause=Cause.FAILURES),
            (
                "SET state = cancelled, shelf = cancelled#3, ended_at = 50, partial = False, acked = 5,"
                " failed = 1, failed_more = True, t0 = 7, t1 = -2, totals_exact = True, cause = failures"
            ),
            "(state IN (open, closed))",
        ),
        (
            lambda b: b.end(11, State.COMPLETE, now=50, sources=LIVE, done=Done(6, 0, failed_more=False)),
            (
                "SET state = complete, shelf = complete#3, ended_at = 50, partial = False, acked = 6,"
                " failed = 0, failed_more = False"
            ),
            "(state IN (open, closed))",
        ),
        (
            lambda b: b.count(11, 3, activity=ACTIVITY, sums=(7, -2)),
            f"SET {TOUCHED} ADD acked 3, t0 7, t1 -2",
            "(state IN (open, closed)) AND (mode = estimated OR kind = scatter)",
        ),
        (
            lambda b: b.tell_stall(11, ACTIVITY),
            "SET stall_told = 70, due_at = 90",
            "(state IN (open, closed)) AND (touched_at = 70)",
        ),
        (lambda b: b.hint_failures(11, 3), "ADD failing 3", "(state IN (open, closed))"),
    ],
)
def test_a_move_is_one_conditional_write(
    batches: DynamoBatches, aws: Stubber, asked: Asked, *, move: Move, update: str, condition: str
) -> None:
    aws.add_response("update_item", {"Attributes": encode(BATCH)})

    move(batches)

    (request,) = asked
    assert plainly(request) == (update, condition)
    assert (request["TableName"], request["Key"]) == ("batches", KEY)
    assert request["ReturnValues"] == "ALL_NEW"
    assert request["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"
