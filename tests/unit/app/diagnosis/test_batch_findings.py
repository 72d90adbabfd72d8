from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fanin.app.diagnosis.batch_findings import batch_findings
from fanin.app.diagnosis.facts import Facts
from fanin.app.ports.parts import SentRow
from fanin.domain.batch import Batch, Kind, OnDeadline, State
from fanin.domain.diagnosis import Code, Finding, Severity
from fanin.domain.reports import MissingRange

NOW = 1_790_000_000_000
HOUR = 3_600_000
BATCH = Batch(
    7, b"s" * 16, NOW, NOW, 0, 7_200, 604_800, items=100, state=State.CLOSED, closed_at=NOW, stall_after=1_800
)
MISSING = (MissingRange(40, 100, ""),)


def of(
    now: int = NOW, batch: Batch = BATCH, queues: list[Finding] | None = None, **facts: Any
) -> dict[Code, Finding]:
    known = Facts(batch, now, **{"missing": MISSING, "done_max": batch.items, **facts})
    return {one.code: one for one in batch_findings(known, queues or [])}


def test_done_and_not_complete_is_an_error_that_verify_repairs() -> None:
    found = of(unsettled=True, done_min=100, missing=())

    assert found[Code.DONE_UNSETTLED].severity is Severity.ERROR
    assert "fanin verify" in found[Code.DONE_UNSETTLED].advice


@pytest.mark.parametrize(("now", "severity"), [(NOW, Severity.INFO), (NOW + HOUR, Severity.WARNING)])
def test_a_producer_that_was_just_at_work_may_still_be(now: int, severity: Severity) -> None:
    batch = replace(BATCH, state=State.OPEN, closed_at=None)

    assert of(now, batch)[Code.OPEN_NOT_CLOSED].severity is severity


def test_a_buffer_is_always_open() -> None:
    batch = replace(BATCH, state=State.OPEN, kind=Kind.BUFFER)

    assert Code.OPEN_NOT_CLOSED not in of(batch=batch)


@pytest.mark.parametrize(("now", "severity"), [(NOW, Severity.WARNING), (NOW + HOUR, Severity.ERROR)])
def test_items_without_a_note_beside_others_with_one_were_never_sent(now: int, severity: Severity) -> None:
    found = of(now, sent=(SentRow("q", 0, 40, NOW, NOW),))

    assert found[Code.NEVER_SENT].severity is severity
    assert found[Code.NEVER_SENT].evidence == {"first": 40, "items": 60}


def test_where_nothing_was_noted_nothing_is_claimed() -> None:
    assert "If you send messages yourself" in of(NOW + HOUR)[Code.NEVER_SENT].detail
    assert Code.NEVER_SENT not in of(NOW + HOUR, begun=True)
    assert Code.NEVER_SENT not in of(NOW + HOUR, sent_more=True)


def test_held_items_wait_by_choice() -> None:
    found = of(NOW + HOUR, held={41: "no such customer", 40: "no price"}, begun=True)

    assert found[Code.HELD].severity is Severity.INFO
    assert found[Code.HELD].evidence == {"held": 2, "item": 40}
    assert found[Code.HELD].detail.startswith("2 failed items wait")
    assert "Item 40 failed: no price" in found[Code.HELD].detail


def test_held_items_were_sent_whether_or_not_a_note_says_so() -> None:
    assert Code.NEVER_SENT not in of(NOW + HOUR, held={40: "no"})


def test_where_others_may_be_held_no_item_is_called_unsent() -> None:
    sent = (SentRow("q", 0, 40, NOW, NOW),)

    assert Code.NEVER_SENT in of(NOW + HOUR, sent=sent)
    found = of(NOW + HOUR, sent=sent, held={41: "no"}, held_more=True)
    assert Code.NEVER_SENT not in found
    assert found[Code.HELD].detail.startswith("At least 1 failed item waits")


class TestSlow:
    def test_says_rate_and_time_left(self) -> None:
        found = of(NOW + 1_000_000, begun=True, done_min=40, batch=replace(BATCH, touched_at=NOW + 900_000))

        assert set(found) == {Code.SLOW}
        assert found[Code.SLOW].evidence == {
            "done_min": 40,
            "items": 100,
            "items_per_second": "0.04",
            "eta_seconds": 1_500,
        }

    def test_is_not_said_of_a_batch_that_is_quiet_or_has_not_begun(self) -> None:
        assert Code.SLOW not in of(NOW + HOUR, begun=True, done_min=40)
        assert Code.SLOW not in of(NOW)

    def test_is_not_said_where_every_missing_item_is_held(self) -> None:
        held = dict.fromkeys(range(40, 100), "no price")

        assert set(of(NOW, begun=True, done_min=40, held=held)) == {Code.HELD}

    def test_after_a_minute_without_items_it_does_not_claim_that_the_batch_moves(self) -> None:
        later = NOW + BATCH.step + 61_000

        assert of(NOW, begun=True)[Code.SLOW].title == "The batch is moving"
        assert "perhaps none lately" in of(later, begun=True)[Code.SLOW].title

    def test_the_last_activity_was_not_before_the_batch_was_opened(self) -> None:
        young = replace(BATCH, touched_at=NOW - 300_000)

        assert "at most 1 second ago" in of(NOW + 1_000, young, begun=True)[Code.SLOW].detail

    def test_a_rest_that_should_be_done_by_now_has_perhaps_failed_once(self) -> None:
        # Given 98 items of 100 that were done within seconds, and a last activity some minutes ago
        soon = {"begun": True, "done_min": 98, "missing": (MissingRange(98, 100, ""),)}
        batch = replace(BATCH, touched_at=NOW)

        # Then the two are said to come again, rather than to be done in a moment
        assert "come again" in of(NOW + 120_000, batch, **soon)[Code.SLOW].detail
        # But not where the rest takes longer than that
        assert "come again" not in of(NOW + 120_000, batch, begun=True, done_min=40)[Code.SLOW].detail

    def test_without_a_count_the_rate_is_not_known(self) -> None:
        assert "cannot be told" in of(NOW + 1, begun=True)[Code.SLOW].detail


class TestDeadline:
    def test_far_away_it_is_not_told(self) -> None:
        assert Code.DEADLINE_NEAR not in of(batch=replace(BATCH, deadline=NOW + HOUR))

    def test_near_it_is(self) -> None:
        near = replace(BATCH, deadline=NOW + 120_000, on_deadline=OnDeadline.COMPLETE)

        found = of(batch=near)[Code.DEADLINE_NEAR]

        assert (found.severity, found.evidence) == (Severity.INFO, {"seconds_left": 120})
        assert "complete with what is done" in found.detail

    def test_one_that_the_rate_will_miss_is_a_warning(self) -> None:
        batch = replace(BATCH, deadline=NOW + HOUR)

        found = of(NOW + 1_000_000, batch=batch, begun=True, done_min=10)[Code.DEADLINE_NEAR]

        assert found.severity is Severity.WARNING


def test_what_nothing_explains_is_said_to_be_so() -> None:
    found = of(NOW + HOUR, begun=True)

    assert set(found) == {Code.UNEXPLAINED}
    assert found[Code.UNEXPLAINED].severity is Severity.WARNING


def test_what_could_not_be_seen_explains_nothing() -> None:
    blind = Finding(Code.NOT_SEEN, Severity.INFO, "", "", "")

    assert set(of(NOW + HOUR, begun=True, queues=[blind])) == {Code.NOT_SEEN, Code.UNEXPLAINED}


def test_of_a_batch_that_has_ended_only_that_is_said() -> None:
    ended = replace(BATCH, state=State.CANCELLED, ended_at=NOW)

    assert set(of(batch=ended, held={40: "no"})) == {Code.ENDED}


def test_of_a_batch_that_has_ended_it_says_how_many_items_were_not_done_if_that_is_known() -> None:
    ended = replace(BATCH, state=State.CANCELLED, ended_at=NOW)

    assert "At least 1 item was not done" in of(batch=ended, done_max=99)[Code.ENDED].detail
    assert "not done" not in of(batch=ended)[Code.ENDED].detail
