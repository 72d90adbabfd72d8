"""Items on the wire: ranges that can be given back as they are."""

from dataclasses import replace

from fanin.domain.ids import MAX_COUNT, issue
from fanin.domain.marks import ItemRange
from fanin.domain.reports import MissingRange, missing_ranges
from fanin.wire.items import MISSING_RANGE
from fanin.wire.marks import RANGE
from tests.unit.domain.test_batch import BATCH


def test_a_missing_range_is_a_mark():
    block = issue(7, 0, 1_000, b"salt-of-a-batch!")
    written = MISSING_RANGE.encode(MissingRange(991, 1000, block.prefix))
    assert written == {"group": block.prefix, "from": 991, "to": 1000}
    assert RANGE.decode(written) == ItemRange(block.prefix, 991, 1000)
    assert MISSING_RANGE.decode(written) == MissingRange(991, 1000, block.prefix)


def test_a_range_is_named_by_the_group_of_its_batch_and_cut_where_that_ends():
    # Given a batch of a little more items than a group can have
    batch = replace(BATCH, batch_id=7, items=MAX_COUNT + 10)
    first, second = issue(7, 0, MAX_COUNT, batch.salt), issue(7, MAX_COUNT, 10, batch.salt)
    # Then each range stands in the groups whose items it has
    ranges = missing_ranges(batch, [(2, 5), (MAX_COUNT - 1, MAX_COUNT + 3)])
    assert [one.items for one in ranges] == [
        ItemRange(first.prefix, 2, 5),
        ItemRange(first.prefix, MAX_COUNT - 1, MAX_COUNT),
        ItemRange(second.prefix, 0, 3),
    ]
    assert (ranges[2].start, ranges[2].stop) == (MAX_COUNT, MAX_COUNT + 3)
