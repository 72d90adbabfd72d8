"""What ports hand over: answers to messages, events, shards, records and tallies."""

import json

import pytest

from fanin.app.ports.events import Event
from fanin.app.ports.parts import SHARDS, shard
from fanin.app.ports.queues import Figures, Offered
from fanin.app.ports.records import FOREVER, Record
from fanin.app.ports.words import Tally
from fanin.domain.ids import MAX_BATCH_ID
from fanin.errors import Throttled

# What became of messages, for a caller who wants all of them sent or none waiting.


def test_each_message_is_answered_in_its_place():
    assert Offered({1: "gone"}, {}).answers(3) == [None, "gone", None]
    assert Offered({}, {}).answers(0) == []


def test_messages_that_wait_are_an_error_that_says_why():
    with pytest.raises(
        Throttled, match=r"^queues did not accept 2 messages \(busy\); try again later$"
    ) as error:
        Offered({0: "gone"}, {1: "busy", 2: "busy, too"}).answers(3)
    assert error.value.retry_after == 1


# Events as they are sent, and their size as EventBridge counts it.


def test_an_event_carries_its_own_id_in_its_detail():
    event = Event("7.complete", "Batch Completed", {"user_key": "☂"}, 0)

    assert event.body == '{"user_key":"☂","id":"7.complete"}'
    assert Event("", "sold", {"n": 7}, 0).body == '{"n":7}'


def test_half_a_surrogate_pair_stays_escaped():
    assert Event("", "sold", {"n": "\ud83d é"}, 0).body == '{"n":"\\ud83d é"}'


@pytest.mark.parametrize(
    ("character", "size"), [("a", 1), ("é", 2), ("☂", 3), ("💥", 4), ("\n", 2), ("\0", 6)]
)
def test_its_size_is_that_of_its_bytes(character, size):
    empty = Event("", "sold", {"n": ""}, 0, source="shop")
    event = Event("", "sold", {"n": character * 100}, 0, source="shop")

    assert empty.size == len('{"n":""}') + len("sold") + len("shop") + 14
    assert event.size - empty.size == 100 * size
    assert json.loads(event.body) == event.detail


def test_its_type_and_source_count_in_bytes_too():
    assert Event("", "☂", {}, 0, source="é").size == len("{}") + 3 + 2 + 14


# Where large parts of a batch are.


def test_parts_of_one_batch_are_spread_and_never_in_the_partition_of_a_batch():
    partitions = {shard(MAX_BATCH_ID, ordinal) for ordinal in range(100)}

    assert len(partitions) == SHARDS
    assert min(partitions) > MAX_BATCH_ID


def test_two_batches_share_no_partition():
    mine, other = ({shard(batch_id, ordinal) for ordinal in range(SHARDS)} for batch_id in (0, MAX_BATCH_ID))

    assert mine.isdisjoint(other)


@pytest.mark.parametrize(
    ("counts", "empty"), [((0, 0, 0), True), ((1, 0, 0), False), ((0, 1, 0), False), ((0, 0, 1), False)]
)
def test_a_queue_is_empty_if_nothing_is_visible_in_flight_or_delayed(counts, empty):
    assert Figures(*counts, retention=60).empty is empty


# A record lives until its second, and not in it.


SECOND = 1_800_000_000


@pytest.mark.parametrize(
    ("expires_at", "now", "lives"),
    [
        (SECOND, SECOND * 1000 - 1, True),
        (SECOND, SECOND * 1000, False),
        (SECOND, SECOND * 1000 + 1, False),
        (FOREVER, SECOND * 1000, True),
    ],
)
def test_a_record_lives_until_its_time_to_live(expires_at, now, *, lives):
    assert Record("name", {}, 1, expires_at).lives(now) is lives


# Tallies add up.


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        (Tally(), Tally(), Tally(0)),
        (Tally(2), Tally(3), Tally(5)),
        (Tally(2), Tally(3, whole=False), Tally(5, whole=False)),
        (Tally(2, whole=False), Tally(), Tally(2, whole=False)),
    ],
)
def test_a_sum_is_whole_if_both_are(ours, theirs, both):
    assert ours.and_(theirs) == both
