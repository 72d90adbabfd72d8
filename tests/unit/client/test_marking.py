"""The calls that mark items, as people make them: streams of any length, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fanin import Count, Failure, ItemRange, Result, Tracker
from fanin.client.marking import FAILURES_BYTES
from fanin.domain.acks import Acks, Receipt
from fanin.domain.batch import State
from fanin.domain.failures import KeptMessage
from fanin.domain.totals import MAX_VALUE
from fanin.entry.http.route import MAX_BODY
from fanin.errors import InvalidItemId, InvalidRequest, PartlyMarked
from fanin.wire.compact_json import compact
from fanin.wire.items import ACKS, FAILURES


@pytest.fixture
def tracker(ledger) -> Tracker:
    return Tracker(SimpleNamespace(ledger=ledger))


class TestOddInput:
    """What a caller gets wrong is refused with what was expected and what came."""

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda t: t.ack(5), "items must be an item id, several, or a group, not 5"),
            (lambda t: t.ack(counts=Count(7, 1)), r"counts must be several, such as \[Count.*, not Count"),
            (lambda t: t.ack(ranges="7:g"), r"ranges must be several, such as \[ItemRange.*, not str"),
            (lambda t: t.ack([Result("7:g:0", {"rows": 0.5})]), "must be a whole number"),
            (lambda t: t.fail([5]), "items must be several, .*, not of int"),
            (lambda t: t.fail("7:g:0", 5), "a reason must be text, not 5"),
            (lambda t: t.fail(Failure("7:g:0", OSError("x"))), "a reason must be text, .*str\\(error\\)"),
        ],
    )
    def test_it_is_refused_before_anybody_is_asked(self, tracker, ledger, call, message):
        with pytest.raises(InvalidRequest, match=message):
            call(tracker)
        assert ledger.calls == []

    @pytest.mark.parametrize("odd", [5, Result(5, {"rows": 1})])
    def test_an_id_that_is_not_text_is_refused_by_the_service(self, tracker, odd):
        with pytest.raises(InvalidItemId, match="item ids are text"):
            tracker.ack([odd])


def test_what_a_busy_service_leaves_is_sent_up_to_five_times(tracker, monkeypatch, longest_waits):
    # Given a service that marks one item of each call
    group = tracker.add(tracker.open().batch_id, 10)

    def busy(items, **_):
        raise PartlyMarked(
            "busy", receipts=[Receipt(group.batch_id, "", State.OPEN, first=1)], rest=Acks(items=items[1:])
        )

    monkeypatch.setattr(tracker.ledger, "ack", busy, raising=False)
    # When
    with pytest.raises(PartlyMarked) as found:
        tracker.ack(list(group))
    # Then the error says what was marked, what is left, and when to come back
    assert (list(found.value.rest.items), found.value.receipts[0].first) == (group[5:], 5)
    assert found.value.retry_after == 1
    assert longest_waits == [0.2, 0.4, 0.8, 1.6]


class TestAcks:
    def test_one_id_many_ids_and_a_whole_group(self, tracker):
        batch = tracker.attach(tracker.open().batch_id)
        group = batch.add(10)
        other = batch.add(2**20)
        assert tracker.ack(group[0])[0].first == 1
        assert tracker.ack(iter(group[1:4]))[0].first == 3
        assert tracker.ack(group[:2])[0].duplicates == tuple(group[:2])
        assert tracker.ack(other)[0].ranged == 2**20
        assert tracker.ack(ranges=[ItemRange(group.prefix, 4)])[0].ranged == 6
        assert batch.close().state is State.COMPLETE

    def test_a_stream_longer_than_a_request_is_paged_and_answered_as_one(self, tracker, ledger):
        # Given
        group = tracker.add(tracker.open().batch_id, 25_000)
        ids = [*group, group[0]]
        # When
        [receipt] = tracker.ack(iter(ids))
        # Then
        assert [len(args[0]) for name, args, _ in ledger.calls if name == "ack"] == [10_000, 10_000, 5_001]
        assert receipt.first == 25_000
        assert receipt.duplicates == (group[0],)

    def test_nothing_to_acknowledge_asks_nobody(self, tracker, ledger):
        assert tracker.ack([]) == []
        assert ledger.calls == []

    def test_failures_are_paged_by_number_and_by_bytes(self, tracker, ledger):
        # Given
        group = tracker.add(tracker.open().batch_id, 1_500)
        # When
        [receipt] = tracker.fail(group, "x" * 5_000)
        # Then
        sizes = [len(args[0]) for name, args, _ in ledger.calls if name == "fail"]
        assert sum(sizes) == receipt.first == 1_500
        assert max(sizes) < 200
        assert next(tracker.iter_failures(group.batch_id)).reason == "x" * 1_024

    def test_failures_are_paged_by_the_bytes_of_their_messages(self, tracker, ledger):
        # Given messages of which two fit into a request, and one that is larger than requests usually are
        group = tracker.add(tracker.open().batch_id, 5)
        bodies = ["a" * 400_000] * 4 + ["b" * 1_000_000]
        failures = [
            Failure(item, "torn", KeptMessage(body)) for item, body in zip(group, bodies, strict=True)
        ]
        # When
        tracker.fail(failures)
        # Then
        assert [len(args[0]) for name, args, _ in ledger.calls if name == "fail"] == [2, 2, 1]
        assert tracker.kept_message(group[4]) == KeptMessage("b" * 1_000_000)

    def test_failures_may_have_reasons_of_their_own(self, tracker):
        group = tracker.add(tracker.open().batch_id, 3)
        tracker.fail([group[2], Failure(group[0], "torn")], "wet")
        tracker.fail(Failure(group[1], "late"))
        reasons = [failure.reason for failure in tracker.iter_failures(group.batch_id)]
        assert reasons == ["torn", "late", "wet"]

    def test_results_are_cut_so_that_each_request_fits_the_limit_of_bytes(self, tracker, ledger):
        # Given more items than fit one request with the longest values that there are
        names = [f"{place}{'x' * 31}" for place in "abcd"]
        group = tracker.add(tracker.open(totals=names).batch_id, 6_000)
        values = dict.fromkeys(names, -MAX_VALUE)

        # When they are acknowledged, and others fail
        [receipt] = tracker.ack(Result(item, values) for item in group[:5_000])
        tracker.fail(Failure(item, "torn", totals=values) for item in group[5_000:])

        # Then every request is one that the API takes, and every item is marked
        acks = [Acks(*args, **named) for name, args, named in ledger.calls if name == "ack"]
        failed = [args[0] for name, args, _ in ledger.calls if name == "fail"]
        assert max(len(compact(ACKS.encode(one))) for one in acks) <= MAX_BODY
        assert max(len(compact(FAILURES.encode(one))) for one in failed) <= FAILURES_BYTES
        assert receipt.first == 5_000
        assert tracker.status(group.batch_id, exact=True).done_min == 6_000
