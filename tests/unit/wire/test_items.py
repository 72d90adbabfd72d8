"""Items on the wire: acknowledgements, and ranges that can be given back as they are."""

from __future__ import annotations

from fanin.domain import acks
from fanin.domain.ids import issue
from fanin.domain.reports import MissingRange
from fanin.wire.items import ACKS, MISSING_RANGE, RANGE


def test_empty_parts_are_left_out() -> None:
    assert ACKS.encode(acks.Acks(items=["x"])) == {"items": ["x"]}
    assert ACKS.decode({"ranges": [{"group": "g"}]}).ranges == (acks.ItemRange("g"),)


def test_a_missing_range_is_a_range_of_an_acknowledgement() -> None:
    block = issue(7, 991, 9, b"salt-of-a-batch!")
    written = MISSING_RANGE.encode(MissingRange(991, 1000, block.prefix))
    assert written == {"group": block.prefix, "from": 0, "to": 9}
    assert RANGE.decode(written) == acks.ItemRange(block.prefix, 0, 9)
    assert MISSING_RANGE.decode(written) == MissingRange(991, 1000, block.prefix)
