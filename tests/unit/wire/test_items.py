"""Items on the wire: acknowledgements, and ranges that can be given back as they are."""

from __future__ import annotations

import json

import pytest

from fanin.domain import acks
from fanin.domain.batch import State
from fanin.domain.ids import MAX_COUNT, issue
from fanin.domain.reports import MissingRange
from fanin.domain.totals import MAX_VALUE
from fanin.entry.http.validation import checked
from fanin.errors import InvalidRequest, PartlyMarked
from fanin.wire.items import ACKS, COUNT, FAILURE, MISSING_RANGE, PARTLY_MARKED, RANGE, RESULT
from fanin.wire.shapes import Shape


def test_empty_parts_are_left_out() -> None:
    assert ACKS.encode(acks.Acks(items=["x"])) == {"items": ["x"]}
    assert ACKS.decode({"ranges": [{"group": "g"}]}).ranges == (acks.ItemRange("g"),)


def test_a_missing_range_is_a_range_of_an_acknowledgement() -> None:
    block = issue(7, 991, 9, b"salt-of-a-batch!")
    written = MISSING_RANGE.encode(MissingRange(991, 1000, block.prefix))
    assert written == {"group": block.prefix, "from": 0, "to": 9}
    assert RANGE.decode(written) == acks.ItemRange(block.prefix, 0, 9)
    assert MISSING_RANGE.decode(written) == MissingRange(991, 1000, block.prefix)


def test_a_call_that_was_marked_partly_tells_what_is_done_and_what_is_left() -> None:
    receipts = [acks.Receipt(7, "catalog", State.OPEN, first=2, duplicates=("7:g:0",))]
    rest = acks.Acks(items=("7:g:9",), failures=(acks.Failure("7:g:8", "no price"),))
    body = PARTLY_MARKED.encode(PartlyMarked("slow down", receipts=receipts, rest=rest))

    assert body["rest"] == {"items": ["7:g:9"], "failures": [{"item": "7:g:8", "reason": "no price"}]}
    assert [(one["batch_id"], one["first"], one["duplicates"]) for one in body["batches"]] == [
        (7, 2, ["7:g:0"])
    ]

    read = PARTLY_MARKED.decode(json.loads(json.dumps(body)), message="slow down", retry_after=3)
    assert (str(read), read.retry_after) == ("slow down", 3)
    assert (read.receipts, read.rest) == (receipts, rest)


@pytest.mark.parametrize(
    ("shape", "body", "why"),
    [
        (RANGE, {"group": "g", "from": -1}, f"/from must be a whole number from 0 to {MAX_COUNT}, not -1"),
        (RANGE, {"group": "g", "to": 0}, f"/to must be a whole number from 1 to {MAX_COUNT} or null, not 0"),
        (COUNT, {"batch_id": 7, "n": 0}, f"/n must be a whole number from 1 to {MAX_COUNT}, not 0"),
        (
            RESULT,
            {"item": "i", "totals": {"rows": MAX_VALUE + 1}},
            f"/totals/rows must be a whole number from {-MAX_VALUE} to {MAX_VALUE}, not {MAX_VALUE + 1}",
        ),
        (RESULT, {"item": "i", "totals": {"No": 1}}, "/totals"),
        (FAILURE, {"item": "i", "reason": "", "attempts": -1}, "/attempts must be a whole number from 0"),
    ],
)
def test_what_an_acknowledgement_may_hold_has_bounds(shape: Shape[object], body: object, why: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        checked(shape, json.dumps(body))

    assert why in str(refused.value)
