"""The ledger over HTTPS: its routes and answers, and what is safe to send again."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Services
from fanin.client.https import api
from fanin.client.https.api import NOTHING, HttpsApi
from fanin.client.https.ledger import HttpsLedger
from fanin.client.https.transport import unsigned
from fanin.client.tracker import Tracker
from fanin.domain.acks import Count, Failure, ItemRange
from fanin.domain.batch import Mode, OpenBatch, State
from fanin.domain.frames import OpenFrame
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
from tests.unit.client.https.conftest import OUTAGES, URL, Script, Waits, https, ok, problem


@pytest.fixture
def there(direct: Services) -> LedgerService:
    return direct.ledger


@pytest.fixture
def ledger_of(waits: Waits) -> Callable[[Script], HttpsLedger]:
    return lambda script: HttpsLedger(
        HttpsApi(URL, sign=unsigned, transport=script, backoff=waits.backoff, attempts=4)
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


def test_an_acknowledgement_carries_items_ranges_and_counts(ledger_of):
    # Given
    script = Script(ok({"batches": []}))
    # When
    ledger_of(script).ack(["1:g:0"], ranges=[ItemRange("1:g", 2, 5), ItemRange("1:g")], counts=[Count(9, 4)])
    # Then
    assert json.loads(script.requests[0].body) == {
        "items": ["1:g:0"],
        "ranges": [{"group": "1:g", "from": 2, "to": 5}, {"group": "1:g", "from": 0}],
        "counts": [{"batch_id": 9, "n": 4}],
    }


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
            lambda ledger, group: ledger.ack(counts=[Count(group.batch_id, 5)]),
            lambda ledger, group: ledger.ack(group[:5]),
            lambda ledger, group: ledger.ack(ranges=[ItemRange(group.prefix, 0, 5)]),
            lambda ledger, group: ledger.fail([Failure(item) for item in group[:5]]),
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
            there.ack([item])
            there.close(batch.batch_id)
        if state == "removed":
            there.remove(batch.batch_id)
        gateway.lost = 1

        if state == "removed":
            with pytest.raises(BatchGone):
                over_https.ledger.ack([item])
        else:
            assert over_https.ledger.ack([item])[0].duplicates == (item,)

        assert [path for _, path in gateway.asked] == ["/acks", f"/batches/{batch.batch_id}", "/acks"]

    @pytest.mark.parametrize("down", [1, 2, 20])
    def test_a_count_whose_batch_cannot_be_asked_for_is_unknown(self, gateway, over_https, there, down):
        # Given an estimated batch, and an outage that is longer than one request
        batch = there.open(OpenBatch(mode=Mode.ESTIMATED))
        (item,) = there.add(batch.batch_id, 1)
        gateway.lost = 1 + down

        # When its item is acknowledged, then nobody says that nothing happened
        with pytest.raises(OutcomeUnknown):
            over_https.ledger.ack([item])
        assert there.status(batch.batch_id).batch.acked == 1

    def test_a_malformed_id_is_refused_as_what_it_is(self, gateway, over_https):
        gateway.lost = 1
        with pytest.raises(InvalidItemId):
            over_https.ledger.ack(["not an id"])


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
                lambda ledger, group: ledger.ack(group[:5]),
            ),
            (
                lambda ledger, group: ledger.close(group.batch_id),
                lambda ledger, group: ledger.ack(ranges=[ItemRange(group.prefix, 0, 5)]),
            ),
            (
                lambda ledger, group: ledger.ack([group[9]]),
                lambda ledger, group: ledger.fail([Failure(item) for item in group[:5]]),
            ),
            (
                lambda ledger, group: ledger.fail([Failure(group[9])]),
                lambda ledger, group: ledger.ack(group[:5]),
            ),
        ],
        ids=["ids after status", "a range after close", "failures after an ack", "ids after a failure"],
    )
    def test_a_mark_of_a_batch_that_is_known_to_be_exact_may_be_repeated(  # noqa: PLR0917
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
            ledger.ack(list(group))

    @pytest.mark.parametrize("learn", ["status", "ack"])
    def test_a_mark_of_an_estimated_batch_may_not(self, gateway, over_https, there, outage, learn):
        group = there.add(there.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id, 2)
        if learn == "status":
            over_https.ledger.status(group.batch_id)
        else:
            over_https.ledger.ack([group[0]])
        gateway.down = outage
        asked = len(gateway.requests)
        with pytest.raises(OutcomeUnknown, match="would take effect twice"):
            over_https.ledger.ack([group[1]])
        assert len(gateway.requests) == asked + 1

    def test_where_nobody_knows_the_error_says_for_which_batches_a_repeat_does_no_harm(
        self, gateway, over_https, there, outage
    ):
        group = there.add(there.open(OpenBatch()).batch_id, 1)
        gateway.down = outage
        with pytest.raises(OutcomeUnknown, match="A repeat does no harm to items of exact batches"):
            over_https.ledger.ack(list(group))


class TestPartlyMarked:
    """A service that marks a part of a call, and its clients, which may not know that answer."""

    @staticmethod
    def throttled_once(memory: Memory) -> None:
        """The second write of a word is throttled, once."""
        writes: list[str] = []

        def on_call(call: str, moment: str) -> None:
            if (call, moment) == ("words.clear", "before"):
                writes.append(call)
                if len(writes) == 2:
                    raise Throttled("slow down")

        memory.accesses._on_call = on_call

    def test_the_rest_is_sent_again_and_nothing_else(self, memory, direct, gateway, over_https):
        row = direct.ledger.open(OpenBatch())
        group = direct.ledger.add(row.batch_id, 192)
        self.throttled_once(memory)
        tracker = Tracker(over_https)

        (receipt,) = tracker.ack([group[0], group[64], group[128]])

        assert (receipt.first, receipt.duplicates) == (3, ())
        sent = [json.loads(request.body or b"{}") for request in gateway.requests]
        assert sent == [{"items": [group[0], group[64], group[128]]}, {"items": [group[64]]}]

    def test_a_client_that_does_not_know_the_answer_repeats_the_whole_call(
        self, memory, direct, gateway, monkeypatch
    ):
        # Given a client that finds no class for the code
        monkeypatch.delitem(api._BY_CODE, PartlyMarked.code)
        row = direct.ledger.open(OpenBatch())
        group = direct.ledger.add(row.batch_id, 128)
        direct.ledger.close(row.batch_id)
        self.throttled_once(memory)

        (receipt,) = https(gateway).ledger.ack(list(group))

        assert receipt.complete
        assert sum(request.url.endswith("/acks") for request in gateway.requests) == 2

    def test_over_another_route_the_whole_call_is_sent_again(self, ledger_of):
        partly = problem(503, PartlyMarked.code, batches=[], rest={"items": ["1:g:0"]})
        script = Script(partly, ok({}))

        ledger_of(script)._api.call(NOTHING, "POST", "/buffers/b/done", {})

        assert len(script.requests) == 2
