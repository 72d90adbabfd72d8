"""Marks on the wire: each entry is read alone, and verdicts come by place."""

import json
from functools import reduce
from typing import Any

import pytest

from fanin.domain import limits
from fanin.domain.batch import State
from fanin.domain.failures import KeptMessage
from fanin.domain.ids import MAX_COUNT
from fanin.domain.marks import Count, Done, Failure, ItemRange, Malformed, Mark, Marked, Receipt
from fanin.domain.totals import MAX_VALUE
from fanin.entry.http.validation import parse
from fanin.errors import BatchGone, InvalidItemId, InvalidRequest, OutcomeUnknown, RequestTooLarge, Throttled
from fanin.wire.json_text import compact
from fanin.wire.marks import MARKED, MARKS, REQUEST_BYTES, requests, result_json, size_of

ENTRIES: list[tuple[Mark, Any]] = [
    ("7:g:0", "7:g:0"),
    (Done("7:g:1"), {"item": "7:g:1"}),
    (Done("7:g:1", {"rows": -5}), {"item": "7:g:1", "totals": {"rows": -5}}),
    (Failure("7:g:2"), {"failed": "7:g:2"}),
    (
        Failure("7:g:2", "torn", KeptMessage("body"), 3, "arn:q", {"rows": 1}),
        {
            "failed": "7:g:2",
            "reason": "torn",
            "message": {"body": "body"},
            "attempts": 3,
            "source": "arn:q",
            "totals": {"rows": 1},
        },
    ),
    (ItemRange("7:g", 3, 9), {"group": "7:g", "from": 3, "to": 9}),
    (Count(8, 4, {"rows": 2}), {"batch_id": 8, "count": 4, "totals": {"rows": 2}}),
]


def test_every_kind_of_mark_has_an_entry_that_is_told_by_its_fields():
    body = {"marks": [entry for _, entry in ENTRIES]}

    assert MARKS.encode([mark for mark, _ in ENTRIES]) == body
    assert list(parse(MARKS, json.dumps(body))) == [mark for mark, _ in ENTRIES]


def test_a_range_may_be_a_whole_group():
    assert list(parse(MARKS, '{"marks": [{"group": "7:g"}]}')) == [ItemRange("7:g")]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (5, "an entry of marks must be an item id, or an object with item"),
        (None, "not"),
        ({}, "an entry of marks must be"),
        ({"item": "i", "reason": "torn"}, "the unknown field 'reason'; known are item, totals"),
        ({"item": 5}, "an id is text"),
        ({"item": "i", "totals": []}, "totals"),
        ({"item": "i", "totals": {"rows": MAX_VALUE + 1}}, str(MAX_VALUE)),
        ({"item": "i", "totals": {"rows": 1.5}}, "a whole number"),
        ({"failed": "i", "attempts": -1}, "attempts must be a whole number from 0"),
        ({"failed": "i", "reason": "r" * 1_025}, "reason must be text"),
        ({"failed": "i", "message": "body"}, "cannot be read"),
        ({"failed": "i", "message": {"body": 5}}, "body"),
        ({"group": "g", "from": -1}, f"a whole number from 0 to {MAX_COUNT}, not -1"),
        ({"batch_id": 7, "count": 0}, f"a whole number from 1 to {MAX_COUNT}, not 0"),
        ({"count": 1}, "batch_id"),
    ],
)
def test_an_entry_that_cannot_be_read_is_malformed_in_its_place(entry, why):
    first, bad, last = parse(MARKS, json.dumps({"marks": ["7:g:0", entry, {"failed": "7:g:1"}]}))

    assert (first, last) == ("7:g:0", Failure("7:g:1"))
    assert isinstance(bad, Malformed)
    assert why in str(bad.error)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("{}", InvalidRequest),
        ('{"marks": "7:g:0"}', InvalidRequest),
        ('{"marks": [], "items": []}', InvalidRequest),
        (json.dumps({"marks": ["i"] * (limits.MAX_MARKS + 1)}), RequestTooLarge),
    ],
)
def test_what_is_no_list_of_marks_is_refused_as_a_whole(body, error):
    with pytest.raises(error):
        parse(MARKS, body)


def test_a_malformed_mark_is_not_written():
    with pytest.raises(InvalidRequest, match="no mark"):
        MARKS.encode([Malformed(InvalidRequest("no mark"))])


def test_verdicts_come_back_by_place_with_their_errors():
    receipt = Receipt(7, "catalog", State.OPEN, first=2, failed=1, duplicates=("7:g:0",))
    marked = Marked(
        [receipt],
        {9: BatchGone("gone"), 3: InvalidItemId("forged")},
        {4: Throttled("slow down")},
        {5: OutcomeUnknown("no answer")},
    )

    body = json.loads(json.dumps(MARKED.encode(marked)))
    read = MARKED.decode(body)

    assert body["refused"] == [
        {"place": 3, "code": "invalid-item-id", "detail": "forged"},
        {"place": 9, "code": "batch-gone", "detail": "gone"},
    ]
    assert list(read.receipts) == [receipt]
    for ours, theirs in (
        (marked.refused, read.refused),
        (marked.left, read.left),
        (marked.unknown, read.unknown),
    ):
        assert {place: (type(error), str(error)) for place, error in theirs.items()} == {
            place: (type(error), str(error)) for place, error in ours.items()
        }


def test_an_unknown_code_is_a_refusal():
    read = MARKED.decode({"batches": [], "refused": [{"place": 0, "code": "news", "detail": "so"}]})
    assert type(read.refused[0]) is InvalidRequest


class TestRequests:
    @pytest.mark.parametrize("mark", [mark for mark, _ in ENTRIES] + ["\U0001f600\n\u00e9:g:0"])
    def test_the_size_of_a_mark_is_no_less_than_its_json(self, mark):
        each = len(compact(MARKS.encode([mark, mark])).encode()) - len(compact(MARKS.encode([mark])).encode())

        assert each <= size_of(mark)

    def test_cut_by_weight(self):
        marks: list[Mark] = [Failure("i")] * 1_000 + ["i"] * 10_000 + [Count(7, 1)]

        assert [len(some) for some in requests(marks)] == [1_000, 10_000, 1]

    def test_cut_by_bytes_and_a_mark_that_is_too_large_is_alone(self):
        large = Failure("i", message=KeptMessage("x" * REQUEST_BYTES))

        assert list(requests(["a" * 97, "b" * 97, "c" * 97], most_bytes=200)) == [
            ["a" * 97, "b" * 97],
            ["c" * 97],
        ]
        assert list(requests(["a", large, "b"])) == [["a"], [large], ["b"]]

    def test_take_malformed_marks_along_and_of_none_make_none(self):
        marks: list[Any] = ["i", Malformed(InvalidRequest("no")), Done(5), None]

        assert list(requests(marks)) == [marks]
        assert list(requests([])) == []

    def test_read_one_mark_ahead_at_most(self):
        read: list[int] = []

        def stream() -> Any:
            for n in range(40_000):
                read.append(n)
                yield "i"

        next(requests(stream()))
        assert len(read) == limits.MAX_MARKS + 1


@pytest.mark.parametrize("result", [reduce(lambda inner, _: [inner], range(97), 0), {1: 1, "1": 2}, "\ud800"])
def test_a_result_that_could_not_be_read_again_is_refused(result):
    with pytest.raises(InvalidRequest, match="the result of an item"):
        result_json(result)
