"""The calls that mark items, as people make them: streams of any length, and what is refused."""

from types import SimpleNamespace

import pytest

from fanin import Count, Done, Failure, ItemRange, Tracker
from fanin.domain.batch import State
from fanin.domain.failures import KeptMessage
from fanin.domain.limits import MAX_MARKS
from fanin.domain.marks import Marked, Receipt
from fanin.domain.totals import MAX_VALUE
from fanin.entry.http.route import MAX_BODY
from fanin.errors import (
    AccessDenied,
    BatchGone,
    BatchNotFound,
    InvalidItemId,
    InvalidRequest,
    OutcomeUnknown,
    PartlyMarked,
    ServiceUnavailable,
    Throttled,
)
from fanin.wire.json_text import compact
from fanin.wire.marks import MARKS
from tests.unit.client.conftest import raising


@pytest.fixture
def tracker(ledger) -> Tracker:
    return Tracker(SimpleNamespace(ledger=ledger))


@pytest.fixture
def requests(ledger):
    """The marks of each request to the ledger so far."""
    return lambda: [marks for name, (marks, *_), _ in ledger.calls if name == "mark"]


class TestOddInput:
    """What a caller gets wrong is refused with what was expected and what came."""

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda t: t.ack(5), "marks must be an item id, a group, a range, or several of these, not 5"),
            (lambda t: t.ack(["7:g:0"], totals={"rows": 1}), r"several items as Done\(item, totals, res"),
            (lambda t: t.ack("7:g:0", totals={"rows": 0.5}), "must be a whole number"),
            (lambda t: t.fail(5), "items must be ids or Failures, one or several, not 5"),
            (lambda t: t.fail("7:g:0", 5), "a reason must be text, not 5"),
        ],
    )
    def test_it_is_refused_before_anybody_is_asked(self, tracker, ledger, call, message):
        with pytest.raises(InvalidRequest, match=message):
            call(tracker)
        assert ledger.calls == []

    @pytest.mark.parametrize(
        ("odd", "error", "message"),
        [
            ([5], InvalidItemId, "a mark is an item id, which is text: .*; not 5"),
            (Done(5, {"rows": 1}), InvalidItemId, "an id is text"),
            (Done("7:g:0", {"rows": 0.5}), InvalidRequest, "must be a whole number"),
            ("nonsense", InvalidItemId, "nonsense"),
            (["nonsense", "other"], PartlyMarked, "of 2 marks 2 are refused, .* number 0: .*nonsense"),
            (Count(7, 1), BatchNotFound, "7"),
        ],
    )
    def test_of_one_mark_the_error_itself_is_raised(self, tracker, odd, error, message):
        with pytest.raises(error, match=message):
            tracker.ack(odd)

    def test_each_failure_stands_alone(self, tracker):
        entries = [7, Failure("7:g:0", OSError("x")), Done("7:g:1"), "7:g:2", Failure("7:g:3", "torn")]
        with pytest.raises(PartlyMarked) as caught:
            tracker.fail(entries, "late")
        said = [str(error) for _, error in caught.value.refused]
        assert ["an id is text" in said[0], "str(error)" in said[1], "an id is text" in said[2]] == [True] * 3
        assert [mark.item for mark, _ in caught.value.refused if isinstance(mark, Failure)][-2:] == [
            *("7:g:2", "7:g:3")
        ]


class TestPartly:
    """Of several marks the good ones are marked, and one error says what became of the others."""

    def test_bad_marks_harm_no_other(self, tracker):
        group = tracker.add(tracker.open(totals=["rows"]).batch_id, 5)
        lines = Done(group[1], {"lines": 1})
        with pytest.raises(PartlyMarked, match="of 4 marks 2 are refused, 0 left") as found:
            tracker.ack([Done(group[0], {"rows": 7}), lines, "nonsense", Failure(group[2], "torn")])
        error = found.value
        assert [(mark, type(why)) for mark, why in error.refused] == [
            (lines, InvalidRequest),
            ("nonsense", InvalidItemId),
        ]
        assert (error.left, error.unknown) == ([], [])
        assert [(receipt.first, receipt.failed) for receipt in error.receipts] == [(2, 1)]
        assert tracker.status(group.batch_id).batch.totals == {"rows": 7}
        assert not error.retryable

    def test_what_is_left_is_sent_again_while_that_marks_something_and_five_times_beyond(
        self, tracker, monkeypatch, longest_waits
    ):
        # Given a service that marks the first mark of its first requests, and refuses the last
        calls: list[str] = []
        bad = InvalidItemId("bad")

        def busy(marks):
            calls.append("".join(marks))
            last, progress = len(marks) - 1, len(calls) <= 3
            refused = {last: bad} if marks[last] == "z" else {}
            left = {at: Throttled("busy") for at in range(int(progress), last + 1) if at not in refused}
            return Marked([Receipt(7, "", State.OPEN, first=1)] if progress else [], refused, left)

        monkeypatch.setattr(tracker.ledger, "mark", busy, raising=False)
        with pytest.raises(PartlyMarked) as found:
            tracker.ack([*"abcde", "z"])
        assert calls == ["abcdez", "bcde", "cde", *["de"] * 4]
        assert longest_waits == [0.2, 0.2, 0.2, 0.4, 0.8, 1.6]
        error = found.value
        assert [mark for mark, _ in error.left] == [*"de"]
        assert error.refused == [("z", bad)]
        assert [receipt.first for receipt in error.receipts] == [3]

    def test_what_may_have_been_counted_is_not_repeated(self, tracker, monkeypatch, longest_waits):
        lost = OutcomeUnknown("no answer")
        answers = iter([Marked((), left={0: lost, 1: Throttled("busy")}, unknown={2: lost}), Marked(())])
        monkeypatch.setattr(tracker.ledger, "mark", lambda _: next(answers), raising=False)
        marked = tracker.mark(["a", "b", "c"])
        assert (marked.left, marked.unknown) == ({0: lost}, {2: lost})

    @pytest.mark.parametrize("error", [Throttled("busy"), ServiceUnavailable("down")])
    def test_a_service_that_is_down_leaves_everything_and_is_asked_once(
        self, tracker, monkeypatch, longest_waits, error
    ):
        asked: list[int] = []

        def down(marks):
            asked.append(len(marks))
            raise error

        monkeypatch.setattr(tracker.ledger, "mark", down, raising=False)
        with pytest.raises(PartlyMarked, match=r"of 25000 marks 0 are refused, 25000 left") as found:
            tracker.ack(f"7:g:{n}" for n in range(25_000))
        assert (found.value.left[0], asked) == (("7:g:0", error), [10_000])
        item, why = found.value.left[-1]
        assert (item, type(why)) == ("7:g:24999", Throttled)
        assert found.value.retryable
        assert tracker.mark(["a", "b"]).left == {0: error, 1: error}

    def test_what_is_not_permitted_is_refused_as_a_whole(self, tracker, monkeypatch):
        monkeypatch.setattr(tracker.ledger, "mark", raising(AccessDenied("not you")), raising=False)
        with pytest.raises(AccessDenied):
            tracker.ack(["a", "b"])

    def test_for_programs_nothing_is_raised_and_places_go_over_all_requests(self, tracker, requests):
        group = tracker.add(tracker.open().batch_id, 12_000)
        marks = [*group[:10_500], "nonsense", *group[10_500:], "other"]
        marked = tracker.mark(marks)
        assert [len(some) for some in requests()] == [10_000, 2_002]
        assert list(marked.refused) == [10_500, 12_001]
        assert [receipt.first for receipt in marked.receipts] == [12_000]


class TestAcks:
    def test_one_id_many_ids_and_a_whole_group(self, tracker):
        batch = tracker.attach(tracker.open().batch_id)
        group = batch.add(10)
        other = batch.add(2**20)
        assert tracker.ack(group[0])[0].first == 1
        assert tracker.ack(iter(group[1:4]))[0].first == 3
        assert tracker.ack(group[:2])[0].duplicates == tuple(group[:2])
        assert tracker.ack(other)[0].ranged == 2**20
        assert tracker.ack([ItemRange(group.prefix, 4)])[0].ranged == 6
        assert batch.close().state is State.COMPLETE

    def test_a_stream_longer_than_a_request_is_paged_and_answered_as_one(self, tracker, requests):
        group = tracker.add(tracker.open().batch_id, 25_000)
        ids = [*group, group[0]]
        [receipt] = tracker.ack(iter(ids))
        assert [len(marks) for marks in requests()] == [10_000, 10_000, 5_001]
        assert receipt.first == 25_000
        assert receipt.duplicates == (group[0],)

    def test_nothing_to_acknowledge_asks_nobody(self, tracker, ledger):
        assert tracker.ack([]) == []
        assert ledger.calls == []

    def test_failures_are_paged_by_number_and_by_bytes(self, tracker, requests):
        group = tracker.add(tracker.open().batch_id, 1_500)
        [receipt] = tracker.fail(group, "x" * 5_000)
        sizes = [len(marks) for marks in requests()]
        assert sum(sizes) == receipt.first == receipt.failed == 1_500
        assert 700 < max(sizes) < 1_000
        assert next(tracker.iter_failures(group.batch_id)).reason == "x" * 1_024

    def test_failures_are_paged_by_the_bytes_of_their_messages(self, tracker, requests):
        # Given messages of which two fit into a request, and one that is larger than requests usually are
        group = tracker.add(tracker.open().batch_id, 5)
        bodies = ["a" * 400_000] * 4 + ["b" * 1_000_000]
        failures = [
            Failure(item, "torn", KeptMessage(body)) for item, body in zip(group, bodies, strict=True)
        ]
        tracker.fail(failures)
        assert [len(marks) for marks in requests()] == [2, 2, 1]
        assert tracker.kept_message(group[4]) == KeptMessage("b" * 1_000_000)

    def test_failures_may_have_reasons_of_their_own(self, tracker):
        group = tracker.add(tracker.open().batch_id, 3)
        tracker.fail([group[2], Failure(group[0], "torn")], "wet")
        tracker.fail(Failure(group[1], "late"))
        reasons = [failure.reason for failure in tracker.iter_failures(group.batch_id)]
        assert reasons == ["torn", "late", "wet"]

    def test_totals_are_cut_so_that_each_request_fits_the_limit_of_bytes(self, tracker, requests):
        # Given more items than fit one request with the longest values that there are
        names = [f"{place}{'x' * 31}" for place in "abcd"]
        group = tracker.add(tracker.open(totals=names).batch_id, 6_000)
        values = dict.fromkeys(names, -MAX_VALUE)
        # When they are acknowledged, and others fail
        [receipt] = tracker.ack(Done(item, values) for item in group[:5_000])
        tracker.fail(Failure(item, "torn", totals=values) for item in group[5_000:])
        # Then every request is one that the API takes, and every item is marked
        assert len(requests()) > 2
        assert max(len(compact(MARKS.encode(marks))) for marks in requests()) <= MAX_BODY
        assert receipt.first == 5_000
        assert tracker.status(group.batch_id, exact=True).done_min == 6_000


def test_an_end_is_learned_from_the_repeat_of_what_was_left(tracker, ledger):
    busy, gone = Throttled("busy"), BatchGone("removed")
    answers = iter([Marked((), left={1: busy}), Marked((), refused={0: gone})])
    ledger.mark = lambda marks: next(answers)
    tracker.mark(["7:g:0", "8:g:0"])
    assert [n for n in (7, 8) if tracker.ended.of(n).ended] == [8]


def test_what_was_not_sent_behind_an_answer_that_was_lost_may_be_sent_again(tracker, ledger):
    # Given a first request whose answer is lost, and whose other marks the next try settles
    answers = iter([Marked((), left={0: OutcomeUnknown("lost"), 1: Throttled("busy")}), Marked(())])
    ledger.mark = lambda marks: next(answers)

    marked = tracker.mark(f"7:g:{n}" for n in range(MAX_MARKS + 1))
    # Then those are left, and not in doubt
    assert {place: type(why) for place, why in marked.left.items()} == {
        0: OutcomeUnknown,
        MAX_MARKS: Throttled,
    }
