from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.app.diagnosis.gathering import Facts, known_ranges
from fanin.app.ports.parts import RetryRow, SentRow
from fanin.app.ports.queues import Figures, QueueReport
from fanin.domain.batch import Batch, State
from fanin.domain.diagnosis import Known
from fanin.domain.reports import MissingRange

NOW = 1_790_000_000_000
BATCH = Batch(7, b"s" * 16, NOW, NOW, 0, 7_200, 604_800, items=100)
URL = "https://sqs/1/work"
FACTS = Facts(BATCH, NOW, 0, 100, missing=(MissingRange(0, 10, ""),), sent=(SentRow(URL, 0, 10, NOW, NOW),))


NO_MESSAGE = "no queue that could be looked at shows a message for them"


def known(facts: Facts) -> tuple[Known, str]:
    (one,) = known_ranges(facts)
    return one.known, one.detail


@pytest.mark.parametrize(
    ("counts", "state", "detail"),
    [
        ((1, 0, 0), Known.WAITING, "probably in the queue work"),
        ((0, 0, 1), Known.WAITING, "probably in the queue work"),
        ((1, 1, 0), Known.WAITING, "probably in the queue work"),
        ((0, 1, 0), Known.IN_FLIGHT, "probably received from the queue work and not finished"),
        ((0, 0, 0), Known.UNKNOWN, NO_MESSAGE),
    ],
)
def test_what_was_sent_is_where_its_queue_shows_messages(
    counts: tuple[int, int, int], state: Known, detail: str
) -> None:
    report = QueueReport(URL, figures=Figures(*counts, retention=60))

    assert known(replace(FACTS, queues=(report,))) == (state, detail)


def test_a_queue_that_could_not_be_looked_at_says_nothing_and_the_next_one_may() -> None:
    # Given items that were sent to two queues, of which one cannot be looked at, and a queue of others
    blind = QueueReport(URL, unseen=("its figures (AccessDenied)",))
    figures = Figures(0, 1, 0, retention=60)
    second, others = "https://sqs/1/second", "https://sqs/1/others"
    sent = (*FACTS.sent, SentRow(second, 0, 10, NOW, NOW), SentRow(others, 10, 20, NOW, NOW))
    facts = replace(FACTS, sent=sent, queues=(blind, QueueReport(others, figures=figures)))

    assert known(facts) == (Known.UNKNOWN, NO_MESSAGE)
    assert known(replace(facts, queues=(blind, QueueReport(second, figures=figures)))) == (
        Known.IN_FLIGHT,
        "probably received from the queue second and not finished",
    )


def test_without_a_note_it_is_unsent_only_beside_notes_of_others() -> None:
    others = (SentRow(URL, 10, 20, NOW, NOW),)

    assert known(replace(FACTS, sent=others)) == (Known.NEVER_SENT, "no note says that these items were sent")
    assert known(replace(FACTS, sent=others, sent_more=True)) == (Known.UNKNOWN, NO_MESSAGE)
    assert known(replace(FACTS, sent=())) == (Known.UNKNOWN, "no note says whether they were sent")


@pytest.mark.parametrize(("at", "inside"), [(9, False), (10, True), (19, True), (20, False)])
def test_attempts_and_children_count_for_the_range_of_their_item(at: int, inside: bool) -> None:
    facts = replace(FACTS, missing=(MissingRange(10, 20, ""),), sent=())
    tried = replace(facts, retries={at: RetryRow(at, 2, "no such customer", "", NOW)})
    child = replace(facts, children={at: replace(BATCH, batch_id=8)})

    unknown = (Known.UNKNOWN, "no note says whether they were sent")
    attempt = f"attempt 2 at item {at} failed: no such customer"
    assert known(tried) == ((Known.RETRYING, attempt) if inside else unknown)
    work = f"batch 8 does the work of item {at}"
    assert known(child) == ((Known.CHILD_RUNNING, work) if inside else unknown)


def test_of_several_reasons_the_one_that_says_most_is_told() -> None:
    # Given items that are held, one of which was tried again and has a child that does its work
    everything = replace(
        FACTS,
        retries={0: RetryRow(0, 2, "no such customer", "", NOW)},
        children={0: replace(BATCH, batch_id=8)},
        held={0: "no price"},
    )

    assert known(everything)[0] is Known.RETRYING
    assert known(replace(everything, retries={}))[0] is Known.CHILD_RUNNING
    assert known(replace(everything, retries={}, children={})) == (Known.HELD, "failed, and held: no price")


def test_where_others_may_be_held_nothing_is_said_of_a_range() -> None:
    assert known(replace(FACTS, held={99: "no"}, held_more=True)) == (
        Known.UNKNOWN,
        "failed items of this batch are held; these may be among them",
    )


def test_of_a_batch_that_has_ended_nothing_is_looked_up() -> None:
    retries = {0: RetryRow(0, 2, "no such customer", "", NOW)}
    ended = replace(FACTS, batch=replace(BATCH, state=State.CANCELLED), retries=retries)

    assert known(ended) == (Known.UNKNOWN, "not done when the batch ended")


def test_the_latest_attempt_at_a_range_is_told() -> None:
    retries = {
        2: RetryRow(2, 9, "no price", "", NOW - 2),
        3: RetryRow(3, 2, "no such customer", "", NOW - 1),
        4: RetryRow(4, 3, "no name", "", NOW - 3),
    }

    assert known(replace(FACTS, retries=retries))[1] == "attempt 2 at item 3 failed: no such customer"
