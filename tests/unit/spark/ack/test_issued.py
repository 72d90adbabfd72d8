"""Checks of what the service issued: each prefix once, each batch as seldom as possible."""

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from fanin.domain.batch import Batch, Mode
from fanin.domain.ids import MAX_BATCH_ID, Block
from fanin.spark.ack.issued import IssuedItems, Refused
from fanin.spark.runtime.rejects import Reason
from tests.spark.given import batch, block

BATCH = batch(7, 5_000)
GONE = batch(9, 10, expires_at=1)
ESTIMATED = batch(11, 10, mode=Mode.ESTIMATED)


class Reader:
    """Batches that a test may change, and which of them were read."""

    def __init__(self, *rows: Batch) -> None:
        self.rows = {row.batch_id: row for row in rows}
        self.reads: list[list[int]] = []

    def read(self, batch_ids: Collection[int]) -> Mapping[int, Batch]:
        self.reads.append(sorted(batch_ids))
        return {batch_id: self.rows[batch_id] for batch_id in batch_ids if batch_id in self.rows}

    def now(self) -> int:
        return 2_000

    def ledger(self) -> Any:
        return SimpleNamespace(ports=SimpleNamespace(batches=self, clock=self))


@pytest.fixture
def reader() -> Reader:
    return Reader(BATCH, GONE, ESTIMATED)


@pytest.fixture
def issued(reader: Reader) -> IssuedItems:
    return IssuedItems(reader)


def test_each_prefix_and_each_batch_is_looked_up_once(issued, reader):
    prefixes = [block(BATCH, n, 1).prefix for n in range(3)]
    for _ in range(2):
        issued.blocks([*prefixes, *prefixes])
    assert reader.reads == [[7]]


def test_a_batch_is_read_again_when_the_input_names_items_beyond_it(issued, reader):
    # Given a batch that was read, and has grown since
    assert issued.whole({7: 5_000}) == {7: Block(7, 0, 5_000, 0)}
    reader.rows[7] = batch(7, 6_000)
    # When items of before are asked for, then it is not read; when others are, it is
    assert issued.whole({7: 4_000}) == {7: Block(7, 0, 5_000, 0)}
    assert issued.whole({7: 5_001}) == {7: Block(7, 0, 6_000, 0)}
    assert reader.reads == [[7], [7]]


def test_numbers_that_cannot_be_batches_are_never_read(issued, reader):
    found = issued.whole({-3: 1, MAX_BATCH_ID + 1: 1})
    assert all(isinstance(one, Refused) and one.reason is Reason.FOREIGN for one in found.values())
    assert reader.reads == [[]]


def test_the_root_is_that_of_the_items_there_are(issued):
    assert issued.top_levels([7])[7] == 2
    assert issued.top_levels([8])[8] == 0


def test_what_is_remembered_is_bounded(issued, reader, monkeypatch):
    # Given room for two prefixes
    monkeypatch.setattr("fanin.spark.ack.issued._MOST", 2)
    blocks: list[Block] = [block(BATCH, n, 1) for n in range(10)]

    for one in blocks:
        assert issued.blocks([one.prefix]) == [one]

    assert len(issued._found) <= 2


def test_items_of_a_batch_with_totals_are_marked_on_level_0(reader):
    reader.rows[13] = batch(13, 5_000, totals={"rows": 0, "cents": 0})
    issued = IssuedItems(reader)

    assert (issued.top_levels([13])[13], issued.totals(13)) == (0, ("rows", "cents"))
    assert (issued.totals(7), issued.totals(8)) == ((), ())
