"""Where large parts of a batch are."""

from __future__ import annotations

from fanin.app.ports.parts import SHARDS, shard
from fanin.domain.ids import MAX_BATCH_ID


def test_parts_of_one_batch_are_spread_and_never_in_the_partition_of_a_batch() -> None:
    partitions = {shard(MAX_BATCH_ID, ordinal) for ordinal in range(100)}

    assert len(partitions) == SHARDS
    assert min(partitions) > MAX_BATCH_ID


def test_two_batches_share_no_partition() -> None:
    mine, other = ({shard(batch_id, ordinal) for ordinal in range(SHARDS)} for batch_id in (0, MAX_BATCH_ID))

    assert mine.isdisjoint(other)
