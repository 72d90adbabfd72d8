"""Items on the wire: ranges that can be given back as they are."""

from __future__ import annotations

from fanin.domain.ids import issue
from fanin.domain.marks import ItemRange
from fanin.domain.reports import MissingRange
from fanin.wire.items import MISSING_RANGE
from fanin.wire.marks import RANGE


def test_a_missing_range_is_a_mark() -> None:
    block = issue(7, 991, 9, b"salt-of-a-batch!")
    written = MISSING_RANGE.encode(MissingRange(991, 1000, block.prefix))
    assert written == {"group": block.prefix, "from": 0, "to": 9}
    assert RANGE.decode(written) == ItemRange(block.prefix, 0, 9)
    assert MISSING_RANGE.decode(written) == MissingRange(991, 1000, block.prefix)
