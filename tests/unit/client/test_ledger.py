"""The calls on batches that every tracker has, on the ledger in memory."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from fanin import Tracker
from fanin.app.ledger.service import LedgerService
from fanin.client.conversions import targets
from fanin.domain.batch import Mode, OnDeadline, OnFailure, OpenBatch, State
from fanin.domain.failures import Keep, Tolerance
from fanin.domain.reports import Verdict
from fanin.errors import InvalidRequest, OutcomeUnknown, ServiceUnavailable
from fanin.testing import Fault


@pytest.fixture
def tracker(ledger) -> Tracker:
    return Tracker(SimpleNamespace(ledger=ledger))


class TestFriendlyTypes:
    def test_times_are_taken_as_people_write_them(self, tracker, memory):
        deadline = datetime.fromtimestamp(memory.clock.now() / 1000 + 3600, UTC)
        batch = tracker.open(
            mode="estimated", idle_ttl=timedelta(hours=1), lifetime=timedelta(days=2), deadline=deadline
        )
        assert batch.mode is Mode.ESTIMATED
        assert batch.open_idle_ttl == 3600
        assert batch.expires_at == tracker.open(lifetime=2 * 86_400).expires_at
        assert batch.deadline == int(deadline.timestamp() * 1000)

    @pytest.mark.parametrize("call", [lambda t: t.open(mode="sloppy"), lambda t: t.list("shut")])
    def test_a_choice_that_is_none_names_those_that_are(self, tracker, call):
        with pytest.raises(InvalidRequest, match=r"name one of .*e"):
            call(tracker)

    def test_expire_follows_the_pages(self, tracker, memory):
        opened = [tracker.open() for _ in range(300)]
        tracker.add(opened[0].batch_id, 7)
        assert tracker.ledger.expire(State.OPEN, idle_since=memory.clock.now() + 1).cursor is not None
        rest = tracker.expire("open", idle_since=memory.clock.now() + 1)
        assert tracker.list("orphaned", limit=1).batches
        assert 0 < rest.batches < 300
        assert not list(tracker.iter_batches("open"))


class PagedVerdicts:
    def __init__(self, ledger):
        self.open = ledger.open
        self.status = ledger.status

    def verify(self, batch_id, *, repair, cursor=None):
        row = self.status(batch_id).batch
        if cursor is None:
            return Verdict(row, 2, ("a",), cursor="2")
        assert cursor == "2"
        return Verdict(row, 3, ("b",))


def test_verify_adds_up_its_pages(memory):
    # Given: a ledger that verifies two items at a time
    tracker = Tracker(SimpleNamespace(ledger=PagedVerdicts(LedgerService(memory.ports()))))
    batch_id = tracker.open().batch_id
    verdict = tracker.verify(batch_id, repair=False)
    assert (verdict.pending, verdict.disagreements, verdict.cursor) == (5, ("a", "b"), None)


def test_what_is_given_to_open_reaches_the_ledger(tracker, ledger, memory):
    deadline = memory.clock.now() + 60_000
    parent = tracker.add(tracker.open().batch_id, 1)[0]
    as_it_is = {
        "user_key": "k",
        "deadline": deadline,
        "limit": 5,
        "parent_item": parent,
        "metadata": {"a": "b"},
        "tolerated_failures": Tolerance(percent=5),
    }
    target = {"type": "step_functions", "when": "complete", "task_token": "token"}
    tracker.open(
        **as_it_is,
        on_deadline="complete",
        stall_after=timedelta(minutes=5),
        keep="reason",
        on_failure="hold",
        on_end=[target],
        totals=["rows", "cents"],
        key="mine",
    )
    ((name, (request,), options),) = ledger.calls[2:]
    assert (name, options) == ("open", {"key": "mine"})
    assert request == OpenBatch(
        **as_it_is,
        on_deadline=OnDeadline.COMPLETE,
        stall_after=300,
        keep=Keep.REASON,
        on_failure=OnFailure.HOLD,
        on_end=targets([target]),
        totals=("rows", "cents"),
    )


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, None),
        (0, Tolerance(count=0)),
        (5, Tolerance(count=5)),
        (Tolerance(percent=1), Tolerance(percent=1)),
    ],
)
def test_a_number_of_tolerated_failures_is_a_count(tracker, ledger, given, meant):
    tracker.open(tolerated_failures=given)
    ((_, (request,), _),) = ledger.calls
    assert request.tolerated_failures == meant


@pytest.mark.parametrize("given", ["5%", 0.05, [5]])
def test_a_tolerance_of_another_type_is_refused_with_an_example(tracker, ledger, given):
    with pytest.raises(InvalidRequest, match=r"such as Tolerance\(percent=5\), not"):
        tracker.open(tolerated_failures=given)
    assert ledger.calls == []


def test_an_addition_without_a_key_gets_one_of_its_own(tracker, ledger):
    batch = tracker.open()
    for key in (None, None, "mine"):
        tracker.add(batch.batch_id, 3, key=key)
    first, second, third = (kwargs["key"] for name, _, kwargs in ledger.calls if name == "add")
    assert first
    assert second
    assert first != second
    assert third == "mine"


def test_an_addition_without_a_key_whose_answer_was_lost_leaves_its_caller_in_doubt(tracker, memory):
    # Given a store that is cut off after it has added
    batch = tracker.open()
    memory.accesses._on_call = Fault("batches.allocate_once", "after", times=2)
    # When items are added, then a repeat would add others, unless the caller has a key
    with pytest.raises(OutcomeUnknown, match="3 items may have been added"):
        tracker.add(batch.batch_id, 3)
    with pytest.raises(ServiceUnavailable):
        tracker.add(batch.batch_id, 4, key="mine")
    assert len(tracker.add(batch.batch_id, 4, key="mine")) == 4
    assert tracker.status(batch.batch_id).batch.items == 7


@pytest.mark.parametrize("totals", [["rows"], "rows=1", {"rows": None}])
def test_what_is_no_set_of_values_is_refused(tracker, totals):
    group = tracker.add(tracker.open(totals=["rows"]).batch_id, 2)
    for mark in (tracker.ack, tracker.fail):
        with pytest.raises(InvalidRequest, match="whole number"):
            mark(group[0], totals=totals)
    assert tracker.status(group.batch_id, exact=True).done_min == 0


@pytest.mark.parametrize("totals", [None, "rows"])
def test_what_is_no_list_of_names_is_refused(tracker, totals):
    with pytest.raises(InvalidRequest, match="must be a list of names"):
        tracker.open(totals=totals)
