"""The tracker: batches in a with block, and what it makes for producers and consumers."""

from contextlib import suppress
from types import SimpleNamespace

import pytest

from fanin import Tracker
from fanin.client.consuming.acknowledging import LedgerAcknowledger, QueueAcknowledger
from fanin.client.items_in_hand import IN_HAND
from fanin.domain.batch import State
from fanin.domain.marks import Done, Failure
from fanin.errors import InvalidRequest, ItemFailed, ItemHasChild, NotConfigured, ServiceUnavailable


@pytest.fixture
def tracker(ledger) -> Tracker:
    return Tracker(SimpleNamespace(ledger=ledger))


class TestWithBatch:
    def test_an_error_cancels_it_and_passes_through(self, tracker):
        with pytest.raises(KeyboardInterrupt), tracker.batch() as batch:
            raise KeyboardInterrupt
        assert tracker.status(batch.id).batch.state is State.CANCELLED

    def test_an_error_leaves_it_open_where_asked(self, tracker):
        with pytest.raises(LookupError), tracker.batch(on_error="leave") as batch:
            raise LookupError
        assert tracker.attach(batch.id).row.state is State.OPEN

    def test_a_cancel_that_fails_does_not_hide_the_error(self, ledger, tracker, monkeypatch):
        def unavailable(batch_id):
            raise ServiceUnavailable("gone fishing")

        monkeypatch.setattr(ledger, "cancel", unavailable, raising=False)
        with pytest.raises(LookupError) as raised, tracker.batch():
            raise LookupError
        assert "gone fishing" in raised.value.__notes__[0]


class TestChildOfTheMessage:
    """A batch for the item of the message that is being handled."""

    @pytest.fixture
    def item(self, tracker):
        return tracker.add(tracker.open().batch_id, 1)[0]

    def test_the_next_run_gets_the_same_batch_and_the_same_items(self, tracker, item):
        groups = []
        for run in range(2):
            with IN_HAND.handling(item) as handling, suppress(LookupError):  # noqa: SIM117
                with tracker.batch(parent_item=item) as child:
                    groups.append([child.add(3), child.add(3), child.add(1, key="mine")])
                    if run == 0:
                        raise LookupError
            assert handling.left_to_child
        assert groups[0] == groups[1]
        assert (child.row.state, child.row.items) == (State.CLOSED, 7)

    def test_a_run_after_the_batch_was_closed_reads_and_sends_nothing(self, tracker, item):
        for run in range(2):
            with IN_HAND.handling(item), tracker.batch(parent_item=item) as child:
                if run == 0:
                    child.add(1)
                else:
                    assert child.send("https://sqs/none", (1 / 0 for _ in range(1))) == 0

    def test_another_key_or_another_request_in_the_next_run_does_not_matter(self, tracker, item):
        with IN_HAND.handling(item):
            first = tracker.open(parent_item=item, key="a")
        with IN_HAND.handling(item):
            second = tracker.open(parent_item=item, key="b", user_key="second")
        assert second.batch_id == first.batch_id

    def test_a_second_batch_within_one_handling_is_refused(self, tracker, item):
        with IN_HAND.handling(item):
            with tracker.batch(parent_item=item):
                pass
            with pytest.raises(ItemHasChild):
                tracker.open(parent_item=item)

    @pytest.mark.parametrize(
        ("on_error", "error", "state"),
        [
            (None, LookupError, State.OPEN),
            (None, ItemFailed, State.CANCELLED),
            ("cancel", LookupError, State.CANCELLED),
            ("leave", ItemFailed, State.OPEN),
        ],
    )
    def test_an_error_leaves_it_to_the_next_run_unless_the_handler_gives_up(
        self, tracker, item, on_error, error, state
    ):
        with IN_HAND.handling(item), suppress(error):  # noqa: SIM117
            with tracker.batch(parent_item=item, on_error=on_error) as child:
                raise error("torn")
        assert tracker.status(child.id).batch.state is state


@pytest.mark.parametrize(
    ("totals", "why"),
    [
        ({"rows": 1.5}, "whole number"),
        ({"rows": 2**53 + 1}, "whole number"),
        (["rows"], "whole number"),
        ({"Rows": 1}, "total"),
    ],
)
def test_values_that_the_ack_queue_would_refuse_are_not_sent(ledger, totals, why):
    tracker = Tracker(SimpleNamespace(ledger=ledger), object, "https://sqs/acks")
    with pytest.raises(InvalidRequest, match=why):
        tracker.ack_later(Done("1:g:1", totals))
    with pytest.raises(InvalidRequest, match=why):
        tracker.ack_later([Failure("1:g:1", totals=totals)])


def test_an_acknowledger_calls_the_ledger_unless_told_otherwise(tracker):
    group = tracker.add(tracker.open().batch_id, 2)
    tracker.acknowledger()([group[0]])
    assert isinstance(tracker.acknowledger("api"), LedgerAcknowledger)
    assert [span.start for span in tracker.iter_missing(group.batch_id)] == [1]


def test_an_acknowledger_for_the_ack_queue_needs_its_url(ledger):
    sqs = object()
    with_queue = Tracker(SimpleNamespace(ledger=ledger), lambda: sqs, "https://sqs/acks")
    assert isinstance(with_queue.acknowledger("queue"), QueueAcknowledger)
    without = Tracker(SimpleNamespace(ledger=ledger))
    for use in (lambda: without.acknowledger("queue"), lambda: without.ack_later(["1:g:0"])):
        with pytest.raises(NotConfigured, match="FANIN_ACK_QUEUE_URL"):
            use()


def test_the_client_for_queues_is_made_once_and_not_before_it_is_needed(ledger):
    made = []
    tracker = Tracker(SimpleNamespace(ledger=ledger), lambda: made.append("client") or "client")
    assert made == []
    assert (tracker.sqs, tracker.sqs, made) == ("client", "client", ["client"])
