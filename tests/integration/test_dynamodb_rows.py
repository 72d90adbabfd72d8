"""What the stores leave in the tables, and what it takes them: rows, sizes and calls."""

from typing import Any

import pytest

from fanin.adapters.dynamodb.metering import Meter
from fanin.app.ports.batches import Activity
from fanin.app.ports.words import Clear, Cleared, ItemClaim, WordKey
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import LIVE, Batch, State
from fanin.errors import NotConfigured

from .conftest import Dynamo

FULL = 2**64 - 1
LATER = 1_800_000_000
KEY = WordKey(2**53 - 1, 0, 2**34 - 1)  # the longest there is
NOW = 1_790_000_000_000


def size(item: dict[str, Any]) -> int:
    """Bytes of a row by DynamoDB's published rules, never less than they say."""

    def of(kind: str, value: Any) -> int:
        if kind == "N":
            return len(value) // 2 + 2
        if kind == "NS":
            return 3 + sum(1 + of("N", number) for number in value)
        return len(value.encode())

    return sum(len(name) + of(*next(iter(typed.items()))) for name, typed in item.items())


@pytest.fixture
def meter(dynamo: Dynamo) -> Meter:
    return Meter(dynamo.connection.client, dynamo.connection.once)


def put(dynamo: Dynamo, batch_id: int, **values: Any) -> Batch:
    batch = Batch(
        batch_id=batch_id,
        salt=bytes(16),
        created_at=NOW,
        touched_at=NOW,
        expires_at=LATER,
        open_idle_ttl=7200,
        closed_idle_ttl=604_800,
        **values,
    )
    assert dynamo.batches.create(batch)
    return batch


class TestWordRows:
    def test_a_word_put_as_done_without_its_bits_is_done(self, dynamo):
        # Given a finished word as a bulk writer puts it
        row = {"word_id": {"S": "7/0/0"}, "word": {"N": "0"}}
        dynamo.connection.put(f"{dynamo.prefix}-words", [row])

        for mask in (0b1, FULL):
            assert dynamo.words.clear([Clear(WordKey(7, 0, 0), mask, LATER)]) == [Cleared(0, 0)]
        assert dynamo.row("words", word_id={"S": "7/0/0"}) == row

    def test_a_row_without_a_word_reads_as_all_ones(self, dynamo):
        key = WordKey(7, 0, 0)
        dynamo.connection.put(f"{dynamo.prefix}-words", [{"word_id": {"S": "7/0/0"}, "lease_3": {"N": "1"}}])

        assert dynamo.words.read([key]) == {}
        assert dynamo.words.clear([Clear(key, 0b1, LATER)]) == [Cleared(FULL ^ 0b1, 0b1)]


class TestWhatItTakes:
    def test_a_clear_is_one_write_and_no_read(self, dynamo, meter):
        dynamo.words.clear([Clear(WordKey(7, 0, n), 0b1011, LATER) for n in range(20)])

        assert (meter.requests, meter.reads.total()) == ({"UpdateItem": 20}, 0)
        assert (meter.writes, meter.refused.total()) == ({"UpdateItem": 20}, 0)

    def test_a_duplicate_is_one_refused_write(self, dynamo, meter):
        dynamo.words.clear([Clear(KEY, 0b0011, LATER)])
        meter.reset()

        dynamo.words.clear([Clear(KEY, 0b0001, LATER)])
        assert (meter.writes.total(), meter.refused.total()) == (1, 1)

        dynamo.words.clear([Clear(KEY, 0b0110, LATER)])
        assert (meter.writes.total(), meter.refused.total()) == (3, 2)


class TestBatchRows:
    def keys(self, dynamo: Dynamo, batch_id: int) -> tuple[str, int]:
        row = dynamo.row("batches", batch_id={"N": str(batch_id)})
        return row["shelf"]["S"], int(row["due_at"]["N"])

    def test_every_move_keeps_the_keys_of_the_index(self, dynamo):
        batch = put(dynamo, 21)
        assert self.keys(dynamo, 21) == ("open#5", batch.due_at)

        dynamo.batches.allocate(21, 1, activity=Activity(NOW + 1, NOW + 2), room=None)
        assert self.keys(dynamo, 21) == ("open#5", NOW + 2)

        dynamo.batches.close(21, now=NOW, activity=Activity(NOW + 3, NOW + 4))
        assert self.keys(dynamo, 21) == ("closed#5", NOW + 4)

        dynamo.batches.touch(21, Activity(NOW + 5, NOW + 6))
        assert self.keys(dynamo, 21) == ("closed#5", NOW + 6)

        dynamo.batches.end(21, State.ORPHANED, now=NOW, sources=LIVE)
        assert self.keys(dynamo, 21) == ("orphaned#5", NOW + 6)


def test_a_table_that_is_not_there_is_a_matter_of_settings(dynamo):
    with pytest.raises(NotConfigured, match="FANIN_"):
        dynamo.connection.read("no-such-table", [{"word_id": {"S": "7/0/0"}}])


def test_a_word_with_all_its_leases_is_still_one_write_unit(dynamo):
    # Given a word of 64 items, every one of them claimed, and failed but for the last
    now, ages = 2**33, 2**35  # seconds; later than anyone will use this
    claims = [ItemClaim(KEY, position, now, now + 43_200, ages) for position in range(64)]
    assert all(claimed.taken for claimed in dynamo.words.claim(claims))
    dynamo.words.clear([Clear(KEY, FULL >> 1, ages, failed=FULL >> 1)])
    # When it is as large as it gets, Then it is under 1 KB, before its last write and after it
    assert size(dynamo.word_row(KEY)) < 1024
    dynamo.words.clear([Clear(KEY, 1 << 63, ages, failed=1 << 63)])
    assert 700 < size(dynamo.word_row(KEY)) < 1024


def test_only_the_opening_of_a_batch_writes_the_keys_of_the_index_by_user_key(dynamo):
    # Given a batch with a user key
    put(dynamo, 8, user_key="nightly", limit=9, deadline=NOW)
    batches, activity = dynamo.batches, Activity(NOW + 1, NOW + 2)
    opened = dynamo.row("batches", batch_id={"N": "8"})
    # When everything that can happen to it happens
    batches.allocate(8, 1, activity=activity, room=8)
    batches.rebound(8, items=1, pending=0)
    batches.allocate_counted(8, 1, items=1, pending=0, activity=activity)
    batches.allocate_once(batches.read([8])[8], 1, IdempotencyKey.of("key"), activity=activity)
    batches.touch(8, activity)
    batches.postpone(8, deadline=NOW, until=NOW + 1, activity=activity)
    batches.close(8, now=NOW, activity=activity)
    batches.end(8, State.COMPLETE, now=NOW, sources=LIVE)
    batches.expire(8, now=NOW)
    # Then its keys there are as they were
    ended = dynamo.row("batches", batch_id={"N": "8"})
    assert ended["state"] != opened["state"]
    assert ended["user_shard"] == opened["user_shard"] == {"S": "nightly#0"}
