from dataclasses import replace
from typing import Any

import pytest

from fanin.app.diagnosis.gathering import Facts
from fanin.app.diagnosis.queue_findings import queue_findings
from fanin.app.ports.parts import RetryRow, SentRow
from fanin.app.ports.queues import Figures, FunctionTrouble, QueueMapping, QueueReport
from fanin.domain.batch import Batch, State
from fanin.domain.diagnosis import Code, Finding, Severity
from fanin.domain.reports import MissingRange
from tests.unit.app.diagnosis.conftest import only

NOW = 1_790_000_000_000
HOUR = 3_600_000
URL = "https://sqs/1/work"
BATCH = Batch(
    7, b"s" * 16, NOW, NOW, 0, 7_200, 604_800, items=100, state=State.CLOSED, closed_at=NOW, stall_after=1_800
)
EMPTY = Figures(0, 0, 0, retention=345_600)
WAITING = Figures(9, 0, 0, retention=345_600)
LOST = Facts(BATCH, NOW, 0, 100).lost(URL)
LAG = "SQS's counts are approximate, and may be a minute old."
ENABLED = QueueMapping("importer", True, "Enabled")
DISABLED = QueueMapping("importer", False, "Disabled", "4e97")


def of(report: QueueReport, now: int = NOW + HOUR, **facts: Any) -> dict[Code, Finding]:
    known = Facts(
        BATCH,
        now,
        0,
        100,
        queues=(report,),
        **{"missing": (MissingRange(0, 10, ""),), "sent": (SentRow(URL, 0, 10, NOW, NOW),), **facts},
    )
    return {one.code: one for one in queue_findings(known)}


def seen(figures: Figures, *consumers: QueueMapping, **more: Any) -> QueueReport:
    return QueueReport(URL, figures=figures, consumers=consumers, troubles=(), **more)


class TestWaiting:
    def test_a_disabled_mapping_is_an_error_even_while_the_batch_moves(self):
        found = of(seen(WAITING, DISABLED, QueueMapping("other", False, "Disabling")), NOW, begun=True)

        assert found == only(
            Code.WAITING,
            Severity.ERROR,
            "Nobody receives the messages: the event source mapping is not enabled",
            "About 9 messages wait in work, and none is in flight. The queue's event source mappings:"
            " importer (Disabled), other (Disabling).",
            "Enable the event source mapping: `aws lambda update-event-source-mapping --enabled --uuid"
            " 4e97`.",
            {
                "queue": "work",
                "visible": 9,
                "in_flight": 0,
                "consumers": "importer (Disabled), other (Disabling)",
            },
        )

    @pytest.mark.parametrize(
        ("now", "begun", "severity", "title"),
        [
            (NOW, False, Severity.WARNING, "Probably nobody receives the messages"),
            (NOW + HOUR, False, Severity.ERROR, "Probably nobody receives the messages"),
            (NOW + HOUR, True, Severity.ERROR, "Probably nobody receives the messages"),
            (NOW + BATCH.step + 60_001, True, Severity.INFO, "Perhaps nobody receives the messages"),
        ],
    )
    def test_without_a_mapping_it_is_the_worse_the_longer_nothing_was_done(self, now, begun, severity, title):
        assert of(seen(WAITING), now, begun=begun) == only(
            Code.WAITING,
            severity,
            title,
            f"About 9 messages wait in work, and none is in flight. {LAG} No event source mapping reads"
            " from the queue.",
            "Connect a consumer to the queue. If processes elsewhere poll it, check that they run.",
            {"queue": "work", "visible": 9, "in_flight": 0},
        )

    def test_while_items_are_done_somebody_receives(self):
        assert of(seen(WAITING), NOW + BATCH.step + 60_000, begun=True) == {}

    def test_a_mapping_that_is_enabled_needs_time(self):
        # Given a queue with two mappings that are enabled, and one that is not
        report = seen(WAITING, ENABLED, DISABLED._replace(function="old"), ENABLED._replace(function="other"))

        assert of(report, NOW) == {}
        assert of(report) == only(
            Code.WAITING,
            Severity.WARNING,
            "Messages wait although a consumer is enabled",
            f"About 9 messages wait in work, and none is in flight. {LAG} The event source mapping of"
            " importer, other is enabled.",
            "Check the function's role, its concurrency, and the visibility timeout of the queue.",
            {"queue": "work", "visible": 9, "in_flight": 0, "consumers": "importer, other"},
        )

    def test_mappings_that_could_not_be_listed_prove_nothing(self):
        report = QueueReport(URL, figures=WAITING._replace(visible=1))

        assert of(report, NOW, begun=True) == {}
        assert of(report) == only(
            Code.WAITING,
            Severity.WARNING,
            "Probably nobody receives the messages",
            f"About 1 message waits in work, and none is in flight. {LAG} Its event source mappings could"
            " not be listed.",
            "Check that the consumers of the queue run, and that they may receive from it.",
            {"queue": "work", "visible": 1, "in_flight": 0},
        )


@pytest.mark.parametrize(
    ("in_flight", "visible", "told"),
    [
        (1, 0, "About 1 message of work is in flight, and 0 wait."),
        (2_000, 1, "About 2,000 messages of work are in flight, and 1 waits."),
    ],
)
def test_messages_in_flight_are_being_worked_on(in_flight, visible, told):
    assert of(seen(WAITING._replace(in_flight=in_flight, visible=visible))) == only(
        Code.IN_FLIGHT,
        Severity.INFO,
        "Consumers work on messages",
        told,
        "Wait. A message whose consumer has died comes again after its visibility timeout.",
        {"queue": "work", "in_flight": in_flight, "visible": visible},
    )


def test_messages_that_cannot_be_received_yet_explain_that_nothing_is_done():
    assert of(seen(EMPTY._replace(delayed=2_000), ENABLED)) == only(
        Code.WAITING,
        Severity.INFO,
        "Messages are delayed",
        "About 2,000 messages of work cannot be received yet.",
        "Wait. SQS delays a message by 15 minutes at most.",
        {"queue": "work", "visible": 0, "in_flight": 0, "delayed": 2_000},
    )


def test_delayed_messages_are_not_told_beside_those_that_can_be_received():
    found = of(seen(Figures(9, 0, 1, retention=345_600), ENABLED))[Code.WAITING]
    assert found.title == "Messages wait although a consumer is enabled"
    assert set(of(seen(Figures(0, 2, 1, retention=345_600), ENABLED))) == {Code.IN_FLIGHT}


class TestTrouble:
    def test_throttles_are_told(self):
        report = replace(seen(WAITING, ENABLED), troubles=(FunctionTrouble("importer", 1_200, 0, 15),))

        assert of(report, NOW) == only(
            Code.THROTTLED,
            Severity.WARNING,
            "The consumer is throttled",
            "Lambda refused 1,200 invocations of importer in the last 15 minutes. Each counts as a"
            " receive of its messages.",
            "Raise the function's reserved concurrency or the account's limit, or set the event source"
            " mapping's maximum concurrency below it.",
            {"queue": "work", "function": "importer", "throttles": 1_200},
        )

    def test_errors_are_told_while_messages_are_left(self):
        trouble = (FunctionTrouble("importer", 0, 1, 15),)

        assert of(replace(seen(EMPTY, ENABLED), troubles=trouble), NOW, begun=True) == {}
        assert of(replace(seen(WAITING, ENABLED), troubles=trouble), NOW) == only(
            Code.RETRYING,
            Severity.WARNING,
            "The consumer fails",
            "1 invocation of importer failed in the last 15 minutes. Their messages come again.",
            "Look into the log of the function.",
            {"queue": "work", "function": "importer", "errors": 1},
        )

    def test_where_all_goes_well_there_is_none(self):
        report = replace(seen(WAITING, ENABLED), troubles=(FunctionTrouble("importer", 0, 0, 15),))

        assert of(report, NOW) == {}


class TestDeadLetters:
    @pytest.mark.parametrize(
        ("now", "begun", "severity"),
        [(NOW, True, Severity.WARNING), (NOW, False, Severity.ERROR), (NOW + HOUR, True, Severity.ERROR)],
    )
    def test_explain_an_empty_queue_and_may_be_of_others_while_items_are_done(self, now, begun, severity):
        arn = "arn:aws:sqs:eu-west-1:123456789012:grave"
        report = seen(EMPTY._replace(dead_letters=arn), ENABLED, dead=4_000)

        assert of(report, now, begun=begun) == only(
            Code.DEAD_LETTERS_WAITING,
            severity,
            "4,000 messages wait in grave, the dead-letter queue of work",
            "Probably some are of missing items: these stay missing while nothing fails them. SQS's count is"
            " approximate.",
            "Fix the cause, and let SQS move the messages back: `aws sqs start-message-move-task"
            f" --source-arn {arn}`. `fanin redrive` does not see them, since their items have not failed."
            " Where fanin's function for dead letters consumes that queue, as with a TrackedQueue, it fails"
            f" them. {LOST}",
            {"queue": "work", "dead_letter_queue": "grave", "messages": 4_000},
        )

    def test_are_told_of_a_queue_without_figures(self):
        found = of(QueueReport(URL, dead=1))[Code.DEAD_LETTERS_WAITING]

        assert found.title == "1 message waits in its dead-letter queue, the dead-letter queue of work"
        assert found.evidence == {
            "queue": "work",
            "dead_letter_queue": "its dead-letter queue",
            "messages": 1,
        }


def test_where_every_missing_item_is_held_queues_explain_nothing():
    held = dict.fromkeys(range(10), "no price")

    assert of(seen(WAITING, DISABLED, dead=4, unseen=("its figures",)), held=held) == {}
    assert Code.WAITING in of(seen(WAITING, DISABLED), held=held, missing_more=True)
    assert Code.WAITING in of(seen(WAITING, DISABLED), held={0: "no price"})


class TestEmpty:
    def vanished(self, severity: Severity, lately: str = "") -> Finding:
        return Finding(
            Code.VANISHED,
            severity,
            "The messages are gone, but their items are not marked",
            "work seems empty and nothing is in flight, so probably the messages were deleted without an"
            f" acknowledgement, or purged.{lately} Acknowledgements through the ack queue may be on their"
            " way.",
            f"Check that consumers acknowledge (`@tracker.sqs_handler` does). {LOST}",
            {"queue": "work", "visible": 0, "in_flight": 0},
        )

    def test_messages_have_probably_vanished(self):
        assert of(seen(EMPTY, ENABLED)) == {Code.VANISHED: self.vanished(Severity.ERROR)}
        assert of(seen(EMPTY, ENABLED), NOW + 60_000) == {Code.VANISHED: self.vanished(Severity.WARNING)}

    def test_figures_lag_behind_what_was_just_sent(self):
        found = of(seen(EMPTY, ENABLED), NOW + 59_999)

        assert found == {Code.VANISHED: self.vanished(Severity.WARNING, f" {LAG}")}

    def test_a_note_of_some_of_the_missing_items_is_enough(self):
        missing = (MissingRange(0, 5, ""), MissingRange(20, 25, ""))

        found = of(seen(EMPTY, ENABLED), missing=missing, sent=(SentRow(URL, 4, 10, NOW, NOW),))

        assert set(found) == {Code.VANISHED}

    def test_while_the_batch_moves_an_empty_queue_proves_nothing(self):
        assert of(seen(EMPTY, ENABLED), NOW + 60_000, begun=True) == {}

    def test_a_child_batch_may_do_the_work_without_a_message(self):
        assert of(seen(EMPTY, ENABLED), children={0: replace(BATCH, batch_id=8)}) == {}

    def test_attempts_that_failed_show_that_messages_are_there(self):
        assert of(seen(EMPTY, ENABLED), retries={0: RetryRow(0, 2, "no", "", NOW)}) == {}

    @pytest.mark.parametrize(("after", "gone"), [(12 * HOUR + 59_999, False), (12 * HOUR + 60_000, True)])
    def test_an_attempt_that_is_longer_ago_than_a_message_can_be_hidden_shows_nothing(self, after, gone):
        found = of(seen(EMPTY, ENABLED), NOW + after, retries={0: RetryRow(0, 2, "no", "", NOW)})

        assert (Code.VANISHED in found) is gone

    @pytest.mark.parametrize(
        "sent", [SentRow(URL, 10, 20, NOW, NOW), SentRow("https://sqs/1/other", 0, 10, NOW, NOW)]
    )
    def test_items_that_were_not_sent_there_are_not_looked_for(self, sent):
        assert of(seen(EMPTY), sent=(sent,)) == {}

    @pytest.mark.parametrize(
        ("last_at", "which", "vanished"),
        [(NOW, "all", False), (NOW + 1, "perhaps some", True), (NOW + HOUR, "perhaps some", True)],
    )
    def test_past_the_retention_they_have_expired_but_not_those_that_were_sent_later(
        self, last_at, which, vanished
    ):
        # Given a queue that keeps messages for an hour, and items of which the first were sent an hour ago
        report = seen(EMPTY._replace(retention=3_600), ENABLED)

        found = of(report, sent=(SentRow(URL, 0, 10, NOW, last_at),))

        assert found[Code.EXPIRED] == Finding(
            Code.EXPIRED,
            Severity.ERROR,
            "The messages have probably expired",
            f"work keeps messages for 3,600 seconds, and {which} of the missing items were sent longer ago."
            " It seems empty.",
            f"{LOST} Raise the queue's retention period to the batch's lifetime.",
            {"queue": "work", "visible": 0, "in_flight": 0, "retention": 3_600},
        )
        assert set(found) == ({Code.EXPIRED, Code.VANISHED} if vanished else {Code.EXPIRED})

    def test_of_several_notes_the_first_and_the_last_message_count(self):
        # Given notes of missing items from several times, and an older and a newer one of items that are done
        report = seen(EMPTY._replace(retention=3_600), ENABLED)
        early, late = SentRow(URL, 0, 5, NOW, NOW + 1), SentRow(URL, 5, 10, NOW + 2, NOW + 3)
        done = SentRow(URL, 10, 20, NOW - HOUR, NOW + 9 * HOUR)

        def codes(now: int) -> set[Code]:
            return set(of(report, now, sent=(late, early, done)))

        assert codes(NOW + HOUR - 1) == {Code.VANISHED}
        assert codes(NOW + HOUR) == {Code.EXPIRED, Code.VANISHED}
        assert codes(NOW + HOUR + 2) == {Code.EXPIRED, Code.VANISHED}
        assert codes(NOW + HOUR + 3) == {Code.EXPIRED}


@pytest.mark.parametrize(("begun", "severity"), [(False, Severity.ERROR), (True, Severity.WARNING)])
def test_a_queue_that_is_gone_is_an_error_unless_the_batch_moves(begun, severity):
    found = of(QueueReport(URL, exists=False, unseen=("its figures (QueueDoesNotExist)",)), NOW, begun=begun)

    assert set(found) == {Code.VANISHED, Code.NOT_SEEN}
    assert found[Code.VANISHED] == Finding(
        Code.VANISHED,
        severity,
        "The queue is gone",
        "Missing items were sent to work, and SQS says that there is no such queue.",
        f"Take another queue. {Facts(BATCH, NOW, 0, 100).lost()}",
        {"queue": "work"},
    )


def test_what_may_not_be_read_is_said():
    assert of(QueueReport(URL, unseen=("its figures (AccessDenied)",))) == only(
        Code.NOT_SEEN,
        Severity.INFO,
        "Something could not be looked at",
        "Could not look at its figures (AccessDenied) of queue work.",
        "To have it looked at, tag the queue `fanin:tracked` and let fanin's role read it.",
        {"queue": "work", "unseen": "its figures (AccessDenied)"},
    )


def test_each_queue_is_told_of_and_what_could_not_be_seen_comes_last():
    blind = QueueReport("https://sqs/1/blind", unseen=("its figures", "its consumers"))
    known = Facts(
        BATCH, NOW, 0, 100, missing=(MissingRange(0, 10, ""),), queues=(blind, seen(WAITING, DISABLED))
    )

    found = [(one.code, one.evidence["queue"]) for one in queue_findings(known)]

    assert found == [(Code.WAITING, "work"), (Code.NOT_SEEN, "blind"), (Code.NOT_SEEN, "blind")]
