"""Who is missing and who failed, by name, page by page."""

import pytest

from fanin.app.directory.service import DirectoryService
from fanin.app.scatters.service import ScatterService
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.directory import Register
from fanin.domain.marks import Failure
from fanin.domain.scatter import FailedRecipient, MissingRecipient, Scatter
from fanin.errors import BatchNotFound, InvalidRequest
from tests.unit.app.scatters.conftest import Fleet


def missing(fleet: Fleet, batch: Batch, limit: int = 100) -> list[list[str]]:
    """The names of the missing, a list for each page."""
    pages, cursor = [], None
    while True:
        page = fleet.scatters.missing_recipients(batch.batch_id, cursor=cursor, limit=limit)
        pages.append([one.name for one in page.recipients])
        cursor = page.cursor
        if cursor is None:
            return pages


def test_those_who_neither_replied_nor_failed_are_missing(fleet):
    # Given five recipients of whom one replied, and the queue of one is gone
    scattered = fleet.start(5)
    del fleet.memory.channels.queues["https://sqs/car-3"]
    fleet.work()
    fleet.reply(1)
    batch_id = scattered.batch.batch_id
    # When they are asked for, then the others are missing, and that one has failed
    found = fleet.scatters.missing_recipients(batch_id)
    assert found.recipients == (
        MissingRecipient(0, "car 0"),
        MissingRecipient(2, "car 2"),
        MissingRecipient(4, "car 4"),
    )
    assert found.cursor is None
    (failed,) = fleet.scatters.failed_recipients(batch_id).recipients
    assert (failed.ordinal, failed.name) == (3, "car 3")
    assert failed.reason.startswith("car 3: ")
    status = fleet.scatters.status(batch_id)
    assert (status.missing, status.failed) == (len(found.recipients), 1)


def test_bits_are_read_a_bounded_number_at_a_time(fleet, monkeypatch):
    # Given strides of four recipients
    monkeypatch.setattr("fanin.app.scatters.service._AT_ONCE", 4)
    scattered = fleet.start(11)
    fleet.work()
    for n in range(9):
        fleet.reply(n)

    assert missing(fleet, scattered.batch, 1) == [["car 9"], ["car 10"]]


def test_a_window_with_exactly_a_page_of_the_missing_does_not_end_the_list(fleet, monkeypatch):
    # Given windows of four recipients; two are missing in the first window, and two after it
    monkeypatch.setattr("fanin.app.scatters.service._AT_ONCE", 4)
    scattered = fleet.start(8)
    fleet.work()
    for n in (0, 2, 4, 5):
        fleet.reply(n)
    # When a page has room for exactly the first two, then it says that there are more
    page = fleet.scatters.missing_recipients(scattered.batch.batch_id, limit=2)
    assert [one.ordinal for one in page.recipients] == [1, 3]
    assert page.cursor == "6"
    assert missing(fleet, scattered.batch, 2) == [["car 1", "car 3"], ["car 6", "car 7"]]


def test_failed_recipients_come_page_by_page_with_their_reasons(fleet):
    scattered = fleet.start(5)
    fleet.work()
    batch_id = scattered.batch.batch_id
    fleet.ledger.mark([Failure(fleet.item(n), f"reason {n}") for n in (4, 0, 2)]).whole()

    first = fleet.scatters.failed_recipients(batch_id, limit=2)
    rest = fleet.scatters.failed_recipients(batch_id, cursor=first.cursor, limit=2)

    assert first.recipients == tuple(FailedRecipient(n, f"car {n}", f"reason {n}") for n in (0, 2))
    assert rest.recipients == (FailedRecipient(4, "car 4", "reason 4"),)
    assert rest.cursor is None


@pytest.mark.parametrize("call", ["missing_recipients", "failed_recipients"])
class TestRefusals:
    def test_a_batch_that_is_not_a_scatter(self, fleet, call):
        batch = fleet.ledger.open(OpenBatch())
        with pytest.raises(BatchNotFound, match="is not a scatter"):
            getattr(fleet.scatters, call)(batch.batch_id)

    @pytest.mark.parametrize("limit", [0, 101])
    def test_a_limit_out_of_bounds(self, fleet, call, limit):
        with pytest.raises(InvalidRequest, match="limit must be a whole number from 1 to 100"):
            getattr(fleet.scatters, call)(fleet.start(1).batch.batch_id, limit=limit)

    @pytest.mark.parametrize("cursor", ["x", "-1", "1" * 14, "१"])
    def test_a_cursor_that_the_call_did_not_give(self, fleet, call, cursor):
        with pytest.raises(InvalidRequest, match="cursor"):
            getattr(fleet.scatters, call)(fleet.start(1).batch.batch_id, cursor=cursor)


def test_while_a_large_topic_is_being_listed_nobody_is_missing(fleet):
    # Given a scatter whose recipients the worker has yet to list
    fleet.recipients(1)
    for n in range(2):
        DirectoryService(fleet.ports).register(Register("topic", f"car-{n}", "https://sqs/car-0"))
    scattered = ScatterService(fleet.ledger, at_once=0).start(Scatter("x", topic="topic"))

    assert scattered.starting
    assert missing(fleet, scattered.batch) == [[]]
    fleet.work()
    assert missing(fleet, scattered.batch) == [["car-0", "car-1"]]


def test_who_is_missing_is_still_known_when_the_scatter_has_ended(fleet):
    scattered = fleet.start(3, timeout=10, max_retries=0)
    fleet.work()
    fleet.reply(1)
    fleet.ring(11)

    assert fleet.scatters.status(scattered.batch.batch_id).batch.state is State.COMPLETE
    assert missing(fleet, scattered.batch) == [["car 0", "car 2"]]
