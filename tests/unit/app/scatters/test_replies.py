"""Replies: the first of each recipient counts, and a bad one refuses the whole request.

Replies as they are kept: spread over partitions, the large ones in the bucket; and how it was before.
"""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.ports.parts import SHARDS
from fanin.app.scatters import replies
from fanin.app.scatters.records import reply_name
from fanin.app.scatters.replies import INLINE, Kept, Replies, ReplyStore, claim_key, is_claim_of, namespace
from fanin.domain import ids, limits
from fanin.domain.batch import RETENTION, Batch, State
from fanin.domain.claim_checks import ClaimCheckRequest
from fanin.domain.marks import Failure
from fanin.domain.scatter import GatheredReply, Reply, ReplyReceipt
from fanin.errors import (
    AccessDenied,
    BatchNotFound,
    InvalidItemId,
    InvalidRequest,
    NotConfigured,
    RequestTooLarge,
)
from tests.lost_answers import LostAnswers
from tests.unit.app.scatters.conftest import BATCH, Fleet


class Inbox(Fleet):
    """A fleet, and the receiving side of the scatter that is asked last."""

    def __init__(self) -> None:
        super().__init__()
        self.receiver = self.process()

    def process(self) -> Replies:
        """The receiving side, in a process that starts now."""
        return Replies(self.fresh())

    def ask(self, n: int, **options: Any) -> Batch:
        self.scatter = super().ask(n, **options)
        return self.scatter

    @property
    def batch_id(self) -> int:
        return self.scatter.batch_id

    def item_of(self, i: int) -> str:
        return self.nth(self.scatter, i)

    def reply(self, i: int, payload: object = None, **options: Any) -> ReplyReceipt:
        """The answer to one reply of a recipient."""
        (receipt,) = self.receiver.reply([Reply(self.item_of(i), payload, **options)])
        return receipt

    def die_before(self, call: str, i: int, payload: object, **options: Any) -> None:
        """Reply in a process that dies when it has stored the payload, or when it has set the bit."""
        with self.dying(call, "before"):
            self.process().reply([Reply(self.item_of(i), payload, **options)])

    @property
    def now(self) -> Batch:
        """The batch of the scatter as it is now, with its exact totals."""
        return self.ledger.status(self.batch_id, exact=True).batch

    def listed(self, limit: int = 100) -> dict[int, Any]:
        """Ordinal → payload of all replies that count."""
        found: dict[int, Any] = {}
        cursor: str | None = None
        while True:
            page = self.receiver.replies(self.batch_id, cursor=cursor, limit=limit)
            assert len(page.replies) <= limit
            found |= {reply.ordinal: reply.payload for reply in page.replies}
            cursor = page.cursor
            if cursor is None:
                return found

    def upload(self, i: int) -> str:
        claim = self.receiver.claim(ClaimCheckRequest(self.item_of(i), 10))
        self.memory.claims.uploaded.add(claim.key)
        return claim.key


@pytest.fixture
def inbox() -> Inbox:
    inbox = Inbox()
    inbox.ask(3)
    return inbox


@settings(max_examples=25)
@given(
    requests=st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None])), max_size=4), max_size=4
    )
)
def test_of_each_recipient_the_first_reply_counts_and_the_others_are_duplicates(requests):
    # Given a scatter that one recipient keeps alive, who never replies
    inbox = Inbox()
    inbox.ask(5)
    said: dict[int, str | None] = {}

    for request in requests:
        receipts = inbox.receiver.reply([Reply(inbox.item_of(i), payload) for i, payload in request])

        assert [receipt.item for receipt in receipts] == [inbox.item_of(i) for i, _ in request]
        for (i, payload), receipt in zip(request, receipts, strict=True):
            assert receipt.first is (i not in said)
            assert receipt.different is (i in said and said[i] != payload)
            assert (receipt.batch_id, receipt.state, receipt.late) == (inbox.batch_id, State.CLOSED, False)
            said.setdefault(i, payload)

    assert inbox.listed() == said


def test_one_request_may_reply_to_several_scatters(inbox):
    first_id, first = inbox.batch_id, inbox.item_of(0)
    inbox.ask(1)

    one, two = inbox.receiver.reply([Reply(first, "a"), Reply(inbox.item_of(0), "b")])

    assert (one.batch_id, one.state) == (first_id, State.CLOSED)
    assert (two.batch_id, two.state) == (inbox.batch_id, State.COMPLETE)
    assert (one.first, two.first) == (True, True)
    assert inbox.listed() == {0: "b"}


class TestRefusals:
    """A bad reply refuses its whole request, before anything is written."""

    def refused(self, inbox: Inbox, bad: Reply, error: type[Exception], message: str) -> None:
        before = inbox.accesses.writes.total()
        with pytest.raises(error, match=message):
            inbox.receiver.reply([Reply(inbox.item_of(0), "good"), bad])
        assert inbox.accesses.writes.total() == before
        assert inbox.listed() == {}

    def test_a_hundred_replies_are_allowed_and_one_more_is_too_many(self, inbox):
        replies = [Reply(inbox.item_of(0), "x")] * 101
        with pytest.raises(RequestTooLarge, match="101 replies in one call; send at most 100"):
            inbox.receiver.reply(replies)
        assert inbox.listed() == {}

        assert len(inbox.receiver.reply(replies[:100])) == 100

    @pytest.mark.parametrize(("character", "size"), [("x", 1), ('"', 2), ("é", 6), ("😀", 12)])
    def test_a_payload_over_200_kilobytes_of_json(self, inbox, character, size):
        payload = character * ((204_800 - 2) // size)
        payload += "x" * (204_800 - 2 - len(payload) * size)

        message = r"a payload is over 204800 bytes; upload it with a claim check: POST /v1/claim-checks"
        self.refused(inbox, Reply(inbox.item_of(1), payload + "x"), RequestTooLarge, message)
        assert inbox.reply(1, payload).first

    def test_a_payload_and_a_claim(self, inbox):
        bad = Reply(inbox.item_of(1), "x", inbox.upload(1))
        self.refused(inbox, bad, InvalidRequest, "a reply has a payload or a claim, not both")

    @pytest.mark.parametrize("claim", ["", "x", "../1/2", "days-3/1/2", "days-2/x", "days-2/days-2/x"])
    def test_a_claim_that_was_not_given(self, inbox, claim):
        bad = Reply(inbox.item_of(1), claim=claim)
        self.refused(inbox, bad, InvalidRequest, f"claim '{claim}' was not given for this item")

    def test_a_claim_of_another_recipient_and_one_under_which_nothing_was_uploaded(self, inbox):
        # Given recipients 1 and 11, whose keys begin alike
        inbox.ask(12)
        bad = Reply(inbox.item_of(1), claim=inbox.upload(11))
        self.refused(inbox, bad, InvalidRequest, "was not given for this item")

        key = inbox.receiver.claim(ClaimCheckRequest(inbox.item_of(1), 1)).key
        message = f"no payload was uploaded under claim '{key}'; upload it first"
        self.refused(inbox, Reply(inbox.item_of(1), claim=key), InvalidRequest, message)

    def test_an_item_that_was_not_issued_for_a_scatter(self, inbox):
        item = inbox.item_of(1)
        place = item.rindex(":") - 1
        forged = item[:place] + ("0" if item[place] != "0" else "1") + item[place + 1 :]
        batch, (group,) = inbox.batch(1)
        for bad, error, message in (
            (inbox.item_of(3), InvalidItemId, "from 0 to 2, the items of its group"),
            (forged, InvalidItemId, "was not issued by this service; send"),
            (group[0], BatchNotFound, f"batch {batch.batch_id} is not a scatter; check the id"),
        ):
            self.refused(inbox, Reply(bad, "x"), error, message)


class TestDeaths:
    def test_a_reply_whose_answer_was_lost_is_the_first_whatever_else_comes_meanwhile(self, inbox):
        inbox.ask(4, quorum=2)
        others: list[ReplyReceipt] = []
        answers = LostAnswers(inbox.memory)
        answers.lose(
            "records.put",
            lambda: others.extend(
                inbox.process().reply([Reply(inbox.item_of(1), "two"), Reply(inbox.item_of(2), "other")])
            ),
        )

        receipt = inbox.reply(1, "one")

        # The other call marked the bit, so it is not told to this one; but what is listed is this one's.
        assert answers.repeated
        assert not receipt.different
        assert [one.different for one in others] == [True, False]
        assert inbox.listed() == {1: "one", 2: "other"}
        assert inbox.scatters.status(inbox.batch_id).ready

    def test_a_count_whose_answer_was_lost_ends_no_scatter_too_early(self, inbox):
        inbox.ask(4, quorum=2)
        LostAnswers(inbox.memory).lose("batches.count")

        inbox.reply(1, "one")

        assert inbox.now.state is State.CLOSED


@pytest.mark.parametrize(("quorum", "needed"), [(1, 1), (3, 3), (0.5, 3), (0.61, 4), (None, 6)])
def test_quorum_a_scatter_ends_with_the_reply_that_is_enough(inbox, quorum, needed):
    inbox.ask(6, quorum=quorum)

    for i in range(needed):
        assert inbox.now.state is State.CLOSED
        inbox.process().reply([Reply(inbox.item_of(i), i)] * 2)

    assert (inbox.now.state, inbox.now.partial) == (State.COMPLETE, needed < 6)


def test_a_reply_after_the_end_is_late_and_nothing_of_it_is_stored(inbox):
    inbox.reply(0, "in time")
    inbox.ledger.cancel(inbox.batch_id)
    before = inbox.accesses.writes.copy()

    (receipt,) = inbox.process().reply([Reply(inbox.item_of(1), "late")])

    assert (receipt.late, receipt.first, receipt.duplicate) == (True, False, False)
    assert receipt.state is State.CANCELLED
    assert inbox.listed() == {0: "in time"}
    assert inbox.accesses.writes == before


def test_the_reply_that_is_the_last_needs_no_count(inbox):
    inbox.ask(2, quorum=2)
    for i in range(2):
        inbox.reply(i, i)

    assert inbox.accesses.writes["batches.count"] == 1


def test_a_repeat_after_the_end_is_not_late_if_it_counted_before(inbox):
    # Given a scatter that ended with two replies and a failure of five
    inbox.ask(5, quorum=2)
    inbox.ledger.mark([Failure(inbox.item_of(3), "broken")]).whole()
    inbox.receiver.reply([Reply(inbox.item_of(i), "one") for i in (0, 1)])
    before = inbox.accesses.writes.copy()

    receipts = inbox.process().reply(
        [
            Reply(inbox.item_of(0), "one"),
            Reply(inbox.item_of(1), "two"),
            Reply(inbox.item_of(2), "one"),
            Reply(inbox.item_of(3), "one"),
        ]
    )

    assert [(one.first, one.duplicate, one.different, one.late) for one in receipts] == [
        (False, True, False, False),
        (False, True, True, False),
        (False, False, False, True),
        (False, True, False, False),
    ]
    assert inbox.accesses.writes == before


class TestPages:
    @pytest.mark.parametrize("limit", [1, 3, 100])
    def test_replies_come_once_and_in_the_order_of_the_recipients(self, inbox, limit):
        inbox.ask(120)
        for i in (110, 7, 100, 99, 2, 0):
            inbox.reply(i, i)

        assert list(inbox.listed(limit).items()) == [(i, i) for i in (0, 2, 7, 99, 100, 110)]

    @pytest.mark.parametrize("cursor", ["nonsense", "", "-1", "9" * 14, "WzFd"])
    def test_a_cursor_of_something_else_is_refused(self, inbox, cursor):
        with pytest.raises(InvalidRequest, match="is not from this listing; start again without a cursor"):
            inbox.receiver.replies(inbox.batch_id, cursor=cursor, limit=1)

    def test_large_replies_are_listed_with_their_payloads_page_by_page(self, inbox):
        inbox.ask(12)
        large = {i: f"{i}" + "x" * 200_000 for i in range(12)}
        for i, payload in large.items():
            assert inbox.reply(i, payload).first

        page = inbox.receiver.replies(inbox.batch_id, cursor=None, limit=100)

        assert [reply.ordinal for reply in page.replies] == [0, 1, 2, 3, 4]
        assert all(reply.url is reply.claim is None for reply in page.replies)
        assert inbox.listed() == large

    def test_a_page_of_neighbours_reads_few_words(self, inbox):
        inbox.ask(2_000)
        for first in range(0, 2_000, 100):
            inbox.receiver.reply([Reply(inbox.item_of(i), i) for i in range(first, first + 100)])
        before = inbox.accesses.reads.copy()

        inbox.receiver.replies(inbox.batch_id, cursor="1000", limit=10)

        read = inbox.accesses.reads - before
        assert read["words.read_failed"] <= 7
        assert read["records.read"] <= 2 * 10 + 2

    def test_an_item_that_was_acknowledged_without_a_reply_has_none(self, inbox):
        inbox.ledger.mark([inbox.item_of(0)]).whole()
        inbox.reply(1, "a")

        assert inbox.listed(1) == {1: "a"}

    def test_a_recipient_that_failed_has_no_reply_although_one_was_stored(self, inbox):
        inbox.ledger.mark([Failure(inbox.item_of(1), "broken")]).whole()

        receipts = inbox.receiver.reply([Reply(inbox.item_of(i), i) for i in (0, 1)])

        assert [receipt.first for receipt in receipts] == [True, False]
        assert inbox.listed() == {0: 0}

    @pytest.mark.parametrize("limit", [0, 101])
    def test_a_limit_out_of_bounds_is_refused(self, inbox, limit):
        with pytest.raises(InvalidRequest, match=f"limit must be a whole number from 1 to 100, not {limit}"):
            inbox.receiver.replies(inbox.batch_id, cursor=None, limit=limit)


class TestClaims:
    def test_the_first_claim_counts_and_is_listed_with_its_url(self, inbox):
        first, second = inbox.upload(1), inbox.upload(1)
        at = inbox.clock.at

        receipts = inbox.receiver.reply(
            [
                Reply(inbox.item_of(1), claim=first),
                Reply(inbox.item_of(1), claim=first),
                Reply(inbox.item_of(1), claim=second),
                Reply(inbox.item_of(1), "payload"),
            ]
        )

        assert [(one.first, one.different) for one in receipts] == [
            (True, False),
            (False, False),
            (False, True),
            (False, True),
        ]
        (reply,) = inbox.receiver.replies(inbox.batch_id, cursor=None, limit=1).replies
        assert reply == GatheredReply(1, "car 1", at, None, first, f"memory://claims/{first}")

    @pytest.mark.parametrize(
        ("size", "content_type", "message"),
        [
            (0, "t", "size must be a whole number from 1 to 5368709120, not 0"),
            (5 * 1024**3 + 1, "t", "size must be a whole number from 1 to 5368709120, not 5368709121"),
            (1, "", "content_type must be text of 1 to 256 characters"),
            (1, "t" * 257, "content_type must be text of 1 to 256 characters"),
        ],
    )
    def test_other_sizes_and_types_are_refused(self, inbox, size, content_type, message):
        with pytest.raises(InvalidRequest, match=message):
            inbox.receiver.claim(ClaimCheckRequest(inbox.item_of(1), size, content_type))

    def test_an_item_that_is_not_of_a_scatter_is_refused(self, inbox):
        _, (group,) = inbox.batch(1)
        with pytest.raises(BatchNotFound, match="is not a scatter; check the id"):
            inbox.receiver.claim(ClaimCheckRequest(group[0], 1))
        with pytest.raises(InvalidItemId):
            inbox.receiver.claim(ClaimCheckRequest(inbox.item_of(3), 1))


class TestTotals:
    def test_a_total_that_the_scatter_does_not_have_refuses_the_request_before_a_payload_is_stored(
        self, inbox
    ):
        inbox.ask(2, totals=("km",))
        inbox.accesses.writes.clear()

        with pytest.raises(InvalidRequest, match="has no total 'miles': its totals are km"):
            inbox.receiver.reply(
                [
                    Reply(inbox.item_of(0), 1, totals={"km": 1}),
                    Reply(inbox.item_of(1), 2, totals={"miles": 1}),
                ]
            )
        with pytest.raises(InvalidRequest, match="whole number"):
            inbox.reply(0, 1, totals={"km": 2**60})
        assert not inbox.accesses.writes

    @pytest.mark.parametrize(
        ("stored", "again", "km"), [({"km": 5}, "one", 5), ({"km": 5}, "two", 5), ({}, "two", 0)]
    )
    def test_the_reply_that_was_stored_brings_its_values_whoever_sets_the_bit(self, inbox, stored, again, km):
        # Given a process that died after it stored a payload, with values or without
        inbox.ask(1, totals=("km",))
        inbox.die_before("words.clear", 0, "one", totals=stored)
        # When the recipient replies once more, with other values
        inbox.reply(0, again, totals={"km": 70})
        # Then payload and values are of the same reply
        assert inbox.listed() == {0: "one"}
        assert inbox.now.totals == {"km": km}


DAY = 86_400
LARGE = "x" * INLINE
BATCH_IDS = st.integers(0, ids.MAX_BATCH_ID)


class Box:
    """The replies to a scatter, and the stores they are kept in."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.objects = self.memory.claims.objects
        self.store = ReplyStore(self.memory.ports())

    def keep(self, ordinal: int, payload: Any) -> bool:
        return self.store.keep(BATCH, ordinal, Reply("", payload)).same

    def payloads(self, *ordinals: int) -> dict[int, Any]:
        return {n: kept.payload for n, kept in self.page(*ordinals).items()}

    def page(self, *ordinals: int) -> dict[int, Kept]:
        return self.store.fill(self.store.read(7, ordinals))

    def record(self, ordinal: int) -> dict[str, Any]:
        (record,) = self.memory.records.read(namespace(7, ordinal), [reply_name(ordinal)]).values()
        return record.value


@pytest.fixture
def box() -> Box:
    return Box()


class TestPartitions:
    @settings(max_examples=25)
    @given(BATCH_IDS, BATCH_IDS, st.integers(0, 10**6), st.integers(0, 10**6))
    def test_no_two_scatters_share_one_and_none_is_that_of_a_batch(self, one, other, first, second):
        assert int(namespace(one, first)) > ids.MAX_BATCH_ID
        assert (namespace(one, first) == namespace(other, second)) is (
            one == other and first % SHARDS == second % SHARDS
        )

    def test_a_number_fits_the_key_of_the_table(self):
        assert int(namespace(ids.MAX_BATCH_ID, SHARDS - 1)) < 10**38

    @pytest.mark.parametrize(("ordinal", "partition"), [(0, 1), (1, 2), (15, 16), (16, 1), (17, 2)])
    def test_a_reply_is_where_every_process_looks_for_it(self, ordinal, partition):
        assert namespace(7, ordinal) == str(partition * 2**53 + 7)


class TestFirst:
    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            (1, 1.0, False),
            (1, True, False),
            (0, False, False),
            ([1], [True], False),
            (float("nan"), float("nan"), True),
            ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
            ({1: "a"}, {"1": "a"}, True),
            ("é", "\u00e9", True),
        ],
    )
    def test_values_are_compared_as_json(self, box, *, one, other, same):
        box.keep(0, one)
        assert box.keep(0, other) is same

    def test_a_reply_whose_record_expires_while_it_is_written_differs_from_no_other(self, box, monkeypatch):
        monkeypatch.setattr(box.memory.records, "put", lambda *_, **__: (None, False))

        assert box.keep(0, "a")

    @pytest.mark.parametrize("payload", [None, 0, "a", {"b": [1]}, LARGE])
    def test_the_first_is_kept_and_a_repeat_says_the_same(self, box, payload):
        assert box.keep(3, payload)
        assert box.keep(3, payload)
        assert not box.keep(3, "something else")
        assert box.payloads(3) == {3: payload}


class TestLarge:
    @pytest.mark.parametrize(("size", "stored"), [(4_094, 0), (4_095, 1)])
    def test_over_four_kilobytes_of_json_are_put_into_the_bucket(self, box, size, stored):
        box.keep(5, "x" * size)

        assert len(box.objects) == stored
        assert all(is_claim_of(key, 7, 5) for key in box.objects)
        record = box.record(5)
        assert len(json.dumps(record)) < 4_196
        assert box.payloads(5) == {5: "x" * size}

    def test_an_object_is_put_into_the_bucket_as_its_json_without_spaces(self, box):
        payload = {"b": [1, 2], "a": {"text": LARGE}}

        box.keep(0, payload)

        assert box.payloads(0) == {0: payload}
        (stored,) = box.objects.values()
        assert stored == json.dumps(payload, sort_keys=True, separators=(",", ":")).encode()

    def test_the_loser_of_a_race_does_not_replace_the_payload_of_the_first(self, box):
        # Given a reply that is stored while another one, as large, is about to be
        put = box.memory.claims.put

        def slow(key: str, content: bytes) -> None:
            box.memory.claims.put = put
            assert box.keep(0, LARGE + "first")
            put(key, content)

        box.memory.claims.put = slow

        assert not box.keep(0, LARGE + "second")
        assert box.payloads(0) == {0: LARGE + "first"}

    @pytest.mark.parametrize("error", [NotConfigured, AccessDenied])
    def test_a_process_without_the_bucket_keeps_them_in_the_record(self, box, error):
        put = box.memory.claims.put

        def refuse(key: str, content: bytes) -> None:
            raise error("no bucket")

        box.memory.claims.put = refuse
        assert box.keep(0, LARGE)
        box.memory.claims.put = put

        assert box.keep(0, LARGE)
        assert box.payloads(0) == {0: LARGE}
        assert box.objects == {}

    def test_an_object_that_is_gone_is_listed_as_a_claim(self, box):
        box.keep(0, LARGE)
        (key,) = box.objects
        box.objects.clear()

        (kept,) = box.page(0).values()
        assert (kept.payload, kept.claim) == (None, key)

    @pytest.mark.parametrize("bucket", [True, False])
    def test_a_page_ends_where_it_would_be_too_large(self, box, monkeypatch, bucket):
        monkeypatch.setattr(replies, "PAGE_BYTES", 2 * INLINE + 10)
        if not bucket:
            monkeypatch.setattr(replies, "INLINE", 10**6)
        for ordinal in range(4):
            box.keep(ordinal, LARGE)

        assert list(box.page(*range(4))) == [0, 1]
        monkeypatch.setattr(replies, "PAGE_BYTES", 1)
        assert list(box.page(2, 3)) == [2]

    @pytest.mark.parametrize(("last", "replies"), [(0, 256), (1, 255)])
    def test_a_page_has_a_mebibyte_of_payloads(self, box, last, replies):
        # Given 256 replies of 4,096 bytes, the last of them perhaps a byte larger
        for ordinal in range(256):
            size = 4_096 - len('""') + (last if ordinal == 255 else 0)
            box.keep(ordinal, "x" * size)

        assert len(box.page(*range(256))) == replies


class TestClaimKey:
    def test_no_batch_lives_longer_than_the_bucket_keeps_a_claim(self):
        assert names.CLAIM_DAYS[-1] * DAY >= limits.MAX_LIFETIME + RETENTION
        assert list(names.CLAIM_DAYS) == sorted(names.CLAIM_DAYS)

    @pytest.mark.parametrize("days", names.CLAIM_DAYS)
    def test_a_key_is_known_as_its_recipients(self, days):
        key = claim_key(replace(BATCH, expires_at=days * DAY), 5, "name", 0)

        assert is_claim_of(key, 7, 5)
        assert not is_claim_of(key, 7, 50)
        assert not is_claim_of(key, 70, 5)
