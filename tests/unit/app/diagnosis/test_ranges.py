from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.app.diagnosis.facts import Facts
from fanin.app.diagnosis.ranges import known_ranges
from fanin.app.ports.inspection import Figures, QueueReport
from fanin.app.ports.parts import RetryRow, SentRow
from fanin.domain.batch import Batch, State
from fanin.domain.diagnosis import Known
from fanin.domain.reports import MissingRange

NOW = 1_790_000_000_000
BATCH = Batch(7, b"s" * 16, NOW, NOW, 0, 7_200, 604_800, items=100)
URL = "https://sqs/1/work"
FACTS = Facts(BATCH, NOW, missing=(MissingRange(0, 10, ""),), sent=(SentRow(URL, 0, 10, NOW, NOW),))


def known(facts: Facts) -> Known:
    (one,) = known_ranges(facts)
    assert one.detail
    return one.known


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ((1, 0, 0), Known.WAITING),
        ((0, 0, 1), Known.WAITING),
        ((1, 1, 0), Known.WAITING),
        ((0, 1, 0), Known.IN_FLIGHT),
        ((0, 0, 0), Known.UNKNOWN),
    ],
)
def test_what_was_sent_is_where_its_queue_shows_messages(counts: tuple[int, int, int], state: Known) -> None:
    report = QueueReport(URL, figures=Figures(*counts, retention=60))

    assert known(replace(FACTS, queues=(report,))) is state


def test_a_queue_that_could_not_be_looked_at_says_nothing() -> None:
    assert (
        known(replace(FACTS, queues=(QueueReport(URL, unseen=("its figures (AccessDenied)",)),)))
        is Known.UNKNOWN
    )


def test_without_a_note_it_is_unsent_only_beside_notes_of_others() -> None:
    others = (SentRow(URL, 10, 20, NOW, NOW),)

    assert known(replace(FACTS, sent=others)) is Known.NEVER_SENT
    assert known(replace(FACTS, sent=others, sent_more=True)) is Known.UNKNOWN
    assert known(replace(FACTS, sent=())) is Known.UNKNOWN


def test_a_failed_attempt_a_child_and_a_hold_are_known_first() -> None:
    tried = replace(FACTS, retries={3: RetryRow(3, 2, "no such customer", "", NOW)})
    child = replace(FACTS, children={4: replace(BATCH, batch_id=8)})

    assert known(tried) is Known.RETRYING
    assert "no such customer" in known_ranges(tried)[0].detail
    assert known(child) is Known.CHILD_RUNNING
    assert known(replace(FACTS, held={0: "no price"})) is Known.HELD
    assert "no price" in known_ranges(replace(FACTS, held={0: "no price"}))[0].detail


def test_where_others_may_be_held_nothing_is_said_of_a_range() -> None:
    assert known(replace(FACTS, held={99: "no"}, held_more=True)) is Known.UNKNOWN


def test_of_a_batch_that_has_ended_nothing_is_looked_up() -> None:
    ended = replace(FACTS, batch=replace(BATCH, state=State.CANCELLED), sent=())

    (one,) = known_ranges(ended)

    assert (one.known, one.detail) == (Known.UNKNOWN, "not done when the batch ended")
