"""The ledger over HTTPS: its routes and answers, and what is safe to send again."""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest

from fanin.app.api import Ledger
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Services
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import unsigned
from fanin.client.tracker import Tracker
from fanin.domain.batch import Mode, OpenBatch, State
from fanin.domain.frames import OpenFrame
from fanin.domain.marks import Count, Done, Failure, ItemRange
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    InvalidItemId,
    InvalidRequest,
    OutcomeUnknown,
    PartlyMarked,
    ServiceUnavailable,
    Throttled,
)
from tests.unit.client.https.conftest import OUTAGES, URL, Script, Waits, ok


@pytest.fixture
def there(direct: Services) -> LedgerService:
    return direct.ledger


@pytest.fixture
def ledger_of(waits: Waits) -> Callable[[Script], Ledger]:
    return lambda script: (
        HttpsServices(HttpsApi(URL, sign=unsigned, transport=script, backoff=waits.backoff)).ledger
    )


@pytest.mark.parametrize(
    ("call", "method", "path"),
    [
        (lambda x: x.status(7, exact=True), "GET", "/7?exact=true"),
        (lambda x: x.missing(7, cursor="a/b=", limit=9), "GET", "/7/missing?cursor=a%2Fb%3D&limit=9"),
        (lambda x: x.picture(7), "GET", "/7/picture?number=0"),
        (lambda x: x.picture(7, level=0, number=3), "GET", "/7/picture?level=0&number=3"),
        (lambda x: x.failures(7), "GET", "/7/failures?limit=100"),
        (lambda x: x.verify(7, repair=False), "POST", "/7/verify?repair=false"),
        (lambda x: x.list(State.OPEN), "GET", "?state=open&limit=100"),
        (lambda x: x.list(user_key="a & b#☂"), "GET", "?user_key=a%20%26%20b%23%E2%98%82&limit=100"),
        (
            lambda x: x.list(State.COMPLETE, user_key="k", cursor="c", limit=9),
            "GET",
            "?state=complete&user_key=k&cursor=c&limit=9",
        ),
        (
            lambda x: x.expire(State.OPEN, idle_since=1500),
            "DELETE",
            "?state=open&idle_since=1970-01-01T00%3A00%3A01.500Z",
        ),
    ],
)
def test_what_a_call_asks_for_is_in_its_query(gateway, over_https, call, method, path):
    with suppress(BatchNotFound, InvalidRequest):  # there is no such batch, nor such a cursor
        call(over_https.ledger)
    assert gateway.asked == [(method, f"/batches{path}")]


def test_marks_are_one_list_in_their_order(ledger_of):
    script = Script(ok({"batches": []}))
    failure = Failure("1:g:2", "torn", totals={"rows": 1})
    marks = ["1:g:0", ItemRange("1:g", 2, 5), Done("1:g:1", {"rows": 7}), Count(9, 4), failure]
    ledger_of(script).mark(marks)
    assert json.loads(script.requests[0].body) == {
        "marks": [
            "1:g:0",
            {"group": "1:g", "from": 2, "to": 5},
            {"item": "1:g:1", "totals": {"rows": 7}},
            {"batch_id": 9, "count": 4},
            {"failed": "1:g:2", "reason": "torn", "totals": {"rows": 1}},
        ]
    }


def test_a_bad_mark_is_refused_at_its_place_and_is_not_sent(gateway, over_https, there):
    # Given good marks between those that cannot be written, and one that only the service can judge
    group = there.add(there.open(OpenBatch()).batch_id, 3)
    marks = [7, group[0], Failure(group[1], "\ud83d"), "nonsense", group[2]]
    marked = over_https.ledger.mark(marks)
    refused = {place: type(error) for place, error in marked.refused.items()}
    assert refused == {0: InvalidItemId, 2: InvalidRequest, 3: InvalidItemId}
    assert [receipt.first for receipt in marked.receipts] == [2]
    assert json.loads(gateway.requests[0].body) == {"marks": [group[0], "nonsense", group[2]]}


@pytest.mark.parametrize("call", ["add", "open"])
def test_a_call_without_a_key_gets_one_of_its_own_and_a_given_key_is_kept(gateway, over_https, there, call):
    arguments = (OpenBatch(),) if call == "open" else (there.open(OpenBatch()).batch_id, 3)
    for options in ({}, {}, {"key": "mine"}):
        getattr(over_https.ledger, call)(*arguments, **options)
    first, second, third = (request.headers["Idempotency-Key"] for request in gateway.requests)
    assert first != second
    assert third == "mine"


class TestLostAnswers:
    """A call takes effect once, although its answer is lost and the library sends it again."""

    def test_what_is_opened_or_added_is_there_once(self, gateway, over_https, memory):
        gateway.lost = 2
        batch = over_https.ledger.open(OpenBatch(user_key="k"))
        gateway.lost = 2
        assert over_https.ledger.add(batch.batch_id, 3).upto == 3
        gateway.lost = 2
        frame = over_https.frames.open(OpenFrame(3))
        (opened,) = memory.batches.page(State.OPEN).batches
        assert (opened.batch_id, opened.items) == (batch.batch_id, 3)
        assert [row.batch_id for row in memory.batches.page(State.CLOSED).batches] == [frame.frame_id]

    @pytest.mark.parametrize(
        "mark",
        [
            lambda ledger, group: ledger.mark([Count(group.batch_id, 5)]).whole(),
            lambda ledger, group: ledger.mark(group[:5]).whole(),
            lambda ledger, group: ledger.mark([ItemRange(group.prefix, 0, 5)]).whole(),
            lambda ledger, group: ledger.mark([Failure(item) for item in group[:5]]).whole(),
        ],
        ids=["counts", "ids", "a range", "failures"],
    )
    def test_what_an_estimated_batch_counts_is_counted_once_and_the_caller_is_told(
        self, gateway, over_https, there, mark
    ):
        # Given an estimated batch, and a network that loses one answer
        batch = there.open(OpenBatch(mode=Mode.ESTIMATED))
        group = there.add(batch.batch_id, 10)
        there.close(batch.batch_id)
        gateway.lost = 1
        # When the caller acknowledges five of ten items, once
        with pytest.raises(OutcomeUnknown, match="may have taken effect"):
            mark(over_https.ledger, group)
        # Then five are counted, and the batch is not complete
        row = there.status(batch.batch_id).batch
        assert (row.acked, row.state) == (5, State.CLOSED)

    @pytest.mark.parametrize("state", ["live", "complete", "removed"])
    def test_items_of_an_exact_batch_are_sent_again(self, gateway, over_https, there, state):
        batch = there.open(OpenBatch())
        (item,) = there.add(batch.batch_id, 1)
        if state != "live":
            there.mark([item]).whole()
            there.close(batch.batch_id)
        if state == "removed":
            there.remove(batch.batch_id)
        gateway.lost = 1

        if state == "removed":
            with pytest.raises(BatchGone):
                over_https.ledger.mark([item]).whole()
        else:
            assert over_https.ledger.mark([item]).whole()[0].duplicates == (item,)

        assert [path for _, path in gateway.asked] == ["/acks", f"/batches/{batch.batch_id}", "/acks"]

    def test_marks_of_exact_batches_are_left_and_those_of_estimated_ones_are_unknown(
        self, gateway, over_https, there
    ):
        # Given a request with marks of both, and a count
        exact = there.add(there.open(OpenBatch()).batch_id, 2)
        estimated = there.add(there.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id, 9)
        count = Count(estimated.batch_id, 2)
        marks = [exact[0], estimated[0], count, Failure(exact[1]), Failure(estimated[1])]
        gateway.lost = 1
        # When its answer is lost, then it is not sent again
        marked = over_https.ledger.mark(marks)
        assert (list(marked.left), list(marked.unknown)) == ([0, 3], [1, 2, 4])
        assert {type(error) for error in marked.left.values()} == {ServiceUnavailable}
        assert {type(error) for error in marked.unknown.values()} == {OutcomeUnknown}
        assert there.status(estimated.batch_id).batch.acked == 4

    def test_a_person_repeats_nothing_of_which_nobody_knows_whether_it_counts(
        self, gateway, over_https, there
    ):
        # Given an estimated batch whose mode the client does not know, and two answers that are lost: to the
        # marks, and to the question which batch it is
        estimated = there.add(there.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id, 9)
        gateway.lost = 1 + 6

        with pytest.raises(PartlyMarked, match="A repeat does no harm to items of exact batches"):
            Tracker(over_https).ack(estimated[:3])

        assert there.status(estimated.batch_id).batch.acked == 3


class TestOutage:
    """While the API is down, a call that may be repeated says that it may be, whatever was lost."""

    @pytest.fixture(params=OUTAGES.values(), ids=OUTAGES)
    def outage(self, request):
        return request.param

    @pytest.mark.parametrize(
        ("learn", "mark"),
        [
            (
                lambda ledger, group: ledger.status(group.batch_id),
                lambda ledger, group: ledger.mark(group[:5]).whole(),
            ),
            (
                lambda ledger, group: ledger.close(group.batch_id),
                lambda ledger, group: ledger.mark([ItemRange(group.prefix, 0, 5)]).whole(),
            ),
            (
                lambda ledger, group: ledger.mark([group[9]]).whole(),
                lambda ledger, group: ledger.mark([Failure(item) for item in group[:5]]).whole(),
            ),
            (
                lambda ledger, group: ledger.mark([Failure(group[9])]).whole(),
                lambda ledger, group: ledger.mark(group[:5]).whole(),
            ),
        ],
        ids=["ids after status", "a range after close", "failures after an ack", "ids after a failure"],
    )
    def test_a_mark_of_a_batch_that_is_known_to_be_exact_may_be_repeated(
        self, gateway, over_https, there, outage, learn, mark
    ):
        # Given a client that has had one answer about the batch, and then an outage
        group = there.add(there.open(OpenBatch()).batch_id, 10)
        learn(over_https.ledger, group)
        gateway.down = outage
        # When it marks items, then the error says that a repeat helps
        with pytest.raises(ServiceUnavailable) as raised:
            mark(over_https.ledger, group)
        assert raised.value.retryable
        # And a repeat marks them when the outage is over
        gateway.down = None
        (receipt,) = mark(over_https.ledger, group)
        assert receipt.first + receipt.ranged == 5

    def test_whoever_opened_a_batch_knows_that_it_is_exact(self, gateway, over_https, outage):
        ledger = over_https.ledger
        group = ledger.add(ledger.open(OpenBatch()).batch_id, 1)
        gateway.down = outage
        with pytest.raises(ServiceUnavailable):
            ledger.mark(list(group)).whole()

    @pytest.mark.parametrize("learn", ["status", "ack"])
    def test_a_mark_of_an_estimated_batch_may_not(self, gateway, over_https, there, outage, learn):
        group = there.add(there.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id, 2)
        if learn == "status":
            over_https.ledger.status(group.batch_id)
        else:
            over_https.ledger.mark([group[0]]).whole()
        gateway.down = outage
        asked = len(gateway.requests)
        with pytest.raises(OutcomeUnknown, match="would take effect twice"):
            over_https.ledger.mark([group[1]]).whole()
        assert len(gateway.requests) == asked + 1

    def test_where_nobody_knows_the_error_says_for_which_batches_a_repeat_does_no_harm(
        self, gateway, over_https, there, outage
    ):
        group = there.add(there.open(OpenBatch()).batch_id, 1)
        gateway.down = outage
        with pytest.raises(OutcomeUnknown, match="A repeat does no harm to items of exact batches"):
            over_https.ledger.mark(list(group)).whole()


def test_only_what_a_busy_service_has_left_is_sent_again(memory, direct, gateway, over_https):
    # Given a service whose second write is throttled, once
    writes: list[str] = []

    def on_call(call: str, moment: str) -> None:
        if (call, moment) == ("words.clear", "before"):
            writes.append(call)
            if len(writes) == 2:
                raise Throttled("slow down")

    group = direct.ledger.add(direct.ledger.open(OpenBatch()).batch_id, 192)
    memory.accesses._on_call = on_call

    (receipt,) = Tracker(over_https).ack([group[0], group[64], group[128]])

    assert (receipt.first, receipt.duplicates) == (3, ())
    sent = [json.loads(request.body or b"{}") for request in gateway.requests]
    assert sent == [{"marks": [group[0], group[64], group[128]]}, {"marks": [group[64]]}]
