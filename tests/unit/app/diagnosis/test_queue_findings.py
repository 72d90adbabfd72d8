from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fanin.app.diagnosis.facts import Facts
from fanin.app.diagnosis.queue_findings import queue_findings
from fanin.app.ports.inspection import Consumer, Figures, QueueReport, Trouble
from fanin.app.ports.parts import RetryRow, SentRow
from fanin.domain.batch import Batch, State
from fanin.domain.diagnosis import Code, Finding, Severity
from fanin.domain.reports import MissingRange

NOW = 1_790_000_000_000
HOUR = 3_600_000
URL = "https://sqs/1/work"
BATCH = Batch(
    7, b"s" * 16, NOW, NOW, 0, 7_200, 604_800, items=100, state=State.CLOSED, closed_at=NOW, stall_after=1_800
)
EMPTY = Figures(0, 0, 0, retention=345_600)
WAITING = Figures(9, 0, 0, retention=345_600)
ENABLED, DISABLED = Consumer("importer", True, "Enabled"), Consumer("importer", False, "Disabled")


def of(report: QueueReport, now: int = NOW + HOUR, **facts: Any) -> dict[Code, Finding]:
    known = Facts(
        BATCH,
        now,
        queues=(report,),
        **{"missing": (MissingRange(0, 10, ""),), "sent": (SentRow(URL, 0, 10, NOW, NOW),), **facts},
    )
    return {one.code: one for one in queue_findings(known)}


def seen(figures: Figures, *consumers: Consumer, **more: Any) -> QueueReport:
    return QueueReport(URL, figures=figures, consumers=consumers, troubles=(), **more)


class TestWaiting:
    def test_a_disabled_mapping_is_an_error_even_while_the_batch_moves(self) -> None:
        found = of(seen(WAITING, DISABLED), NOW, begun=True)[Code.WAITING]

        assert found.severity is Severity.ERROR
        assert "importer (Disabled)" in found.detail

    def test_no_mapping_is_an_error_once_the_batch_is_quiet(self) -> None:
        assert of(seen(WAITING))[Code.WAITING].severity is Severity.ERROR
        assert of(seen(WAITING), NOW)[Code.WAITING].severity is Severity.WARNING

    def test_while_items_are_done_somebody_receives(self) -> None:
        assert of(seen(WAITING), NOW, begun=True) == {}

    def test_if_none_was_done_for_a_minute_it_is_said_that_perhaps_nobody_does(self) -> None:
        found = of(seen(WAITING), NOW + BATCH.step + 61_000, begun=True)[Code.WAITING]

        assert (found.severity, found.title) == (Severity.INFO, "Perhaps nobody receives the messages")

    def test_a_mapping_that_is_enabled_needs_time(self) -> None:
        assert of(seen(WAITING, ENABLED), NOW) == {}
        assert of(seen(WAITING, ENABLED))[Code.WAITING].severity is Severity.WARNING

    def test_mappings_that_could_not_be_listed_prove_nothing(self) -> None:
        report = QueueReport(URL, figures=WAITING)

        assert of(report)[Code.WAITING].severity is Severity.WARNING
        assert of(report, NOW, begun=True) == {}

    def test_messages_in_flight_are_being_worked_on(self) -> None:
        found = of(seen(replace_counts(WAITING, in_flight=2)))

        assert set(found) == {Code.IN_FLIGHT}
        assert found[Code.IN_FLIGHT].severity is Severity.INFO


def replace_counts(figures: Figures, **counts: int) -> Figures:
    return figures._replace(**counts)


class TestTrouble:
    def test_throttles_are_told(self) -> None:
        report = replace(seen(WAITING, ENABLED), troubles=(Trouble("importer", 12, 0, 15),))

        found = of(report, NOW)

        assert set(found) == {Code.THROTTLED}
        assert found[Code.THROTTLED].evidence == {"queue": "work", "function": "importer", "throttles": 12}

    def test_errors_are_told_while_messages_are_left(self) -> None:
        trouble = (Trouble("importer", 0, 3, 15),)

        assert Code.RETRYING in of(replace(seen(WAITING, ENABLED), troubles=trouble), NOW)
        assert Code.RETRYING not in of(replace(seen(EMPTY, ENABLED), troubles=trouble), NOW)


def test_dead_letters_are_told_and_explain_an_empty_queue() -> None:
    found = of(seen(EMPTY._replace(dead_letters="grave"), ENABLED, dead=4))

    assert set(found) == {Code.DEAD_LETTERS_WAITING}
    assert found[Code.DEAD_LETTERS_WAITING].evidence["dead_letter_queue"] == "grave"


@pytest.mark.parametrize(("begun", "severity"), [(True, Severity.WARNING), (False, Severity.ERROR)])
def test_while_items_are_done_dead_letters_may_be_of_other_batches(begun: bool, severity: Severity) -> None:
    found = of(seen(EMPTY, ENABLED, dead=4), NOW, begun=begun)[Code.DEAD_LETTERS_WAITING]

    assert found.severity is severity
    assert "start-message-move-task" in found.advice


def test_where_every_missing_item_is_held_queues_explain_nothing() -> None:
    held = dict.fromkeys(range(10), "no price")

    assert of(seen(WAITING, DISABLED, dead=4), held=held) == {}
    assert Code.WAITING in of(seen(WAITING, DISABLED), held=held, missing_more=True)
    assert Code.WAITING in of(seen(WAITING, DISABLED), held={0: "no price"})


class TestEmpty:
    def test_messages_have_probably_vanished(self) -> None:
        found = of(seen(EMPTY, ENABLED))[Code.VANISHED]

        assert found.severity is Severity.ERROR
        assert "approximate" not in found.detail

    def test_figures_lag_behind_what_was_just_sent(self) -> None:
        found = of(seen(EMPTY, ENABLED), NOW + 59_999)[Code.VANISHED]

        assert found.severity is Severity.WARNING
        assert "approximate" in found.detail

    def test_while_the_batch_moves_an_empty_queue_proves_nothing(self) -> None:
        assert of(seen(EMPTY, ENABLED), NOW + 60_000, begun=True) == {}

    def test_attempts_that_failed_show_that_messages_are_there(self) -> None:
        assert of(seen(EMPTY, ENABLED), retries={0: RetryRow(0, 2, "no", "", NOW)}) == {}

    @pytest.mark.parametrize(("after", "gone"), [(12 * HOUR + 59_999, False), (12 * HOUR + 60_000, True)])
    def test_an_attempt_that_is_longer_ago_than_a_message_can_be_hidden_shows_nothing(
        self, after: int, gone: bool
    ) -> None:
        found = of(seen(EMPTY, ENABLED), NOW + after, retries={0: RetryRow(0, 2, "no", "", NOW)})

        assert (Code.VANISHED in found) is gone

    def test_of_items_that_were_sent_over_a_long_time_none_is_said_to_have_expired_for_certain(self) -> None:
        report, sent = seen(EMPTY._replace(retention=3_600)), SentRow(URL, 0, 10, NOW, NOW + HOUR)

        assert "perhaps some of" in of(report, sent=(sent,))[Code.EXPIRED].detail
        assert "all of" in of(report, NOW + 2 * HOUR, sent=(sent,))[Code.EXPIRED].detail

    def test_items_that_were_not_sent_there_are_not_looked_for(self) -> None:
        assert of(seen(EMPTY), sent=(SentRow(URL, 10, 20, NOW, NOW),)) == {}

    @pytest.mark.parametrize(
        ("last_at", "codes"),
        [(NOW, {Code.EXPIRED}), (NOW + HOUR - 1, {Code.EXPIRED, Code.VANISHED})],
    )
    def test_past_the_retention_they_have_expired(self, last_at: int, codes: set[Code]) -> None:
        report = seen(EMPTY._replace(retention=3_600), ENABLED)

        assert set(of(report, sent=(SentRow(URL, 0, 10, NOW, last_at),))) == codes


def test_a_queue_that_is_gone_is_an_error() -> None:
    found = of(QueueReport(URL, exists=False, unseen=("its figures (QueueDoesNotExist)",)))

    assert found[Code.VANISHED].severity is Severity.ERROR
    assert found[Code.NOT_SEEN].severity is Severity.INFO


def test_what_may_not_be_read_is_said() -> None:
    found = of(QueueReport(URL, unseen=("its figures (AccessDenied)",)))

    assert "Could not look at its figures (AccessDenied) of queue work" in found[Code.NOT_SEEN].detail
