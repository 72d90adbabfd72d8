"""Replies as they are kept: spread over partitions, the large ones in the bucket; and how it was before."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.ports.parts import SHARDS
from fanin.app.scatters import reply_store
from fanin.app.scatters.records import reply_name
from fanin.app.scatters.reply_store import (
    INLINE,
    Kept,
    ReplyStore,
    claim_key,
    is_claim_of,
    namespace,
)
from fanin.domain import ids, limits
from fanin.domain.batch import RETENTION, State
from fanin.domain.scatter import Reply
from fanin.errors import AccessDenied, NotConfigured
from tests.lost_answers import LostAnswers
from tests.unit.app.scatters.conftest import BATCH

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
    def test_no_two_scatters_share_one_and_none_is_that_of_a_batch(
        self, one: int, other: int, first: int, second: int
    ) -> None:
        assert int(namespace(one, first)) > ids.MAX_BATCH_ID
        assert (namespace(one, first) == namespace(other, second)) is (
            one == other and first % SHARDS == second % SHARDS
        )

    def test_a_number_fits_the_key_of_the_table(self) -> None:
        assert int(namespace(ids.MAX_BATCH_ID, SHARDS - 1)) < 10**38

    @pytest.mark.parametrize(("ordinal", "partition"), [(0, 1), (1, 2), (15, 16), (16, 1), (17, 2)])
    def test_a_reply_is_where_every_process_looks_for_it(self, ordinal: int, partition: int) -> None:
        assert namespace(7, ordinal) == str(partition * 2**53 + 7)


class TestFirst:
    @pytest.mark.parametrize("payload", [None, 0, "a", {"b": [1]}, LARGE])
    def test_the_first_is_kept_and_a_repeat_says_the_same(self, box: Box, payload: Any) -> None:
        assert box.keep(3, payload)
        assert box.keep(3, payload)
        assert not box.keep(3, "something else")
        assert box.payloads(3) == {3: payload}

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
    def test_values_are_compared_as_json(self, box: Box, *, one: Any, other: Any, same: bool) -> None:
        box.keep(0, one)
        assert box.keep(0, other) is same

    @pytest.mark.parametrize("payload", ["a", LARGE])
    def test_a_write_whose_answer_was_lost_is_this_call_s_own(self, box: Box, payload: str) -> None:
        LostAnswers(box.memory).lose("records.put", lambda: box.keep(0, "another, meanwhile"))

        assert box.keep(0, payload)
        assert box.payloads(0) == {0: payload}

    def test_a_reply_after_the_end_is_compared_and_not_kept(self, box: Box) -> None:
        box.keep(0, "a")
        ended = replace(BATCH, state=State.COMPLETE)
        before = box.memory.accesses.writes.total()

        assert box.store.keep(ended, 0, Reply("", "a")).same
        assert not box.store.keep(ended, 0, Reply("", "b")).same
        assert box.store.keep(ended, 1, Reply("", LARGE)).same
        assert box.memory.accesses.writes.total() == before
        assert box.objects == {}

    def test_a_reply_whose_record_expires_while_it_is_written_differs_from_no_other(
        self, box: Box, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(box.memory.records, "put", lambda *_, **__: (None, False))

        assert box.keep(0, "a")


class TestLarge:
    @pytest.mark.parametrize(("size", "stored"), [(4_094, 0), (4_095, 1)])
    def test_over_four_kilobytes_of_json_are_put_into_the_bucket(
        self, box: Box, size: int, stored: int
    ) -> None:
        box.keep(5, "x" * size)

        assert len(box.objects) == stored
        assert all(is_claim_of(key, 7, 5) for key in box.objects)
        record = box.record(5)
        assert len(json.dumps(record)) < 4_196
        assert box.payloads(5) == {5: "x" * size}

    def test_an_object_is_put_into_the_bucket_as_its_json_without_spaces(self, box: Box) -> None:
        payload = {"b": [1, 2], "a": {"text": LARGE}}

        box.keep(0, payload)

        assert box.payloads(0) == {0: payload}
        (stored,) = box.objects.values()
        assert stored == json.dumps(payload, sort_keys=True, separators=(",", ":")).encode()

    @pytest.mark.parametrize(("last", "replies"), [(0, 256), (1, 255)])
    def test_a_page_has_a_mebibyte_of_payloads(self, box: Box, last: int, replies: int) -> None:
        # Given 256 replies of 4,096 bytes, the last of them perhaps a byte larger
        for ordinal in range(256):
            size = 4_096 - len('""') + (last if ordinal == 255 else 0)
            box.keep(ordinal, "x" * size)

        assert len(box.page(*range(256))) == replies

    def test_the_loser_of_a_race_does_not_replace_the_payload_of_the_first(self, box: Box) -> None:
        # Given a reply that is stored while another one, as large, is about to be
        put = box.memory.claims.put

        def slow(key: str, content: bytes) -> None:
            box.memory.claims.put = put  # type: ignore[method-assign]
            assert box.keep(0, LARGE + "first")
            put(key, content)

        box.memory.claims.put = slow  # type: ignore[method-assign]

        assert not box.keep(0, LARGE + "second")
        assert box.payloads(0) == {0: LARGE + "first"}

    @pytest.mark.parametrize("error", [NotConfigured, AccessDenied])
    def test_a_process_without_the_bucket_keeps_them_in_the_record(
        self, box: Box, error: type[Exception]
    ) -> None:
        put = box.memory.claims.put

        def refuse(key: str, content: bytes) -> None:
            raise error("no bucket")

        box.memory.claims.put = refuse  # type: ignore[method-assign]
        assert box.keep(0, LARGE)
        box.memory.claims.put = put  # type: ignore[method-assign]

        assert box.keep(0, LARGE)
        assert box.payloads(0) == {0: LARGE}
        assert box.objects == {}

    def test_an_object_that_is_gone_is_listed_as_a_claim(self, box: Box) -> None:
        box.keep(0, LARGE)
        (key,) = box.objects
        box.objects.clear()

        (kept,) = box.page(0).values()
        assert (kept.payload, kept.claim) == (None, key)

    @pytest.mark.parametrize("bucket", [True, False])
    def test_a_page_ends_where_it_would_be_too_large(
        self, box: Box, monkeypatch: pytest.MonkeyPatch, bucket: bool
    ) -> None:
        monkeypatch.setattr(reply_store, "PAGE_BYTES", 2 * INLINE + 10)
        if not bucket:
            monkeypatch.setattr(reply_store, "INLINE", 10**6)
        for ordinal in range(4):
            box.keep(ordinal, LARGE)

        assert list(box.page(*range(4))) == [0, 1]
        monkeypatch.setattr(reply_store, "PAGE_BYTES", 1)
        assert list(box.page(2, 3)) == [2]


class TestClaimKey:
    def test_no_batch_lives_longer_than_the_bucket_keeps_a_claim(self) -> None:
        assert names.CLAIM_DAYS[-1] * DAY >= limits.MAX_LIFETIME + RETENTION
        assert list(names.CLAIM_DAYS) == sorted(names.CLAIM_DAYS)

    @pytest.mark.parametrize("days", names.CLAIM_DAYS)
    def test_a_key_is_known_as_its_recipients(self, days: int) -> None:
        key = claim_key(replace(BATCH, expires_at=days * DAY), 5, "name", 0)

        assert is_claim_of(key, 7, 5)
        assert not is_claim_of(key, 7, 50)
        assert not is_claim_of(key, 70, 5)
