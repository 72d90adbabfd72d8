from dataclasses import replace
from typing import Any

import pytest

from fanin.app.diagnosis.batch_findings import batch_findings
from fanin.app.diagnosis.gathering import Facts
from fanin.app.ports.parts import RetryRow, SentRow
from fanin.domain.batch import Batch, Kind, OnDeadline, State
from fanin.domain.diagnosis import Code, Finding, Severity
from fanin.domain.reports import MissingRange
from tests.unit.app.diagnosis.conftest import only

NOW = 1_790_000_000_000
HOUR = 3_600_000
BATCH = Batch(
    7, b"s" * 16, NOW, NOW, 0, 7_200, 604_800, items=100, state=State.CLOSED, closed_at=NOW, stall_after=1_800
)
OPEN = replace(BATCH, state=State.OPEN, closed_at=None)
STEP = BATCH.step
"""How much later than the row says the last activity may have been."""
MISSING = (MissingRange(40, 100, ""),)
LOST = Facts(BATCH, NOW, 0, 100).lost()


def of(
    now: int = NOW, batch: Batch = BATCH, queues: list[Finding] | None = None, **facts: Any
) -> dict[Code, Finding]:
    known = Facts(batch, now, **{"missing": MISSING, "done_min": 0, "done_max": batch.items, **facts})
    return {one.code: one for one in batch_findings(known, queues or [])}


@pytest.mark.parametrize(("done", "which"), [(True, {Code.DONE_UNSETTLED}), (False, {Code.SLOW})])
def test_done_and_not_complete_is_an_error_that_verify_repairs(done, which):
    found = of(done_min=100 if done else 99, begun=True, missing=())

    assert set(found) == which
    if done:
        assert found[Code.DONE_UNSETTLED] == Finding(
            Code.DONE_UNSETTLED,
            Severity.ERROR,
            "Every item is done, but the batch does not know it yet",
            "A process died between marking the last items and completing the batch, or does so right now.",
            "`fanin verify 7 --repair` completes it at once; else the reaper does within 15 minutes after the"
            " close, or at growing intervals.",
            {"items": 100},
        )


class TestOpen:
    @pytest.mark.parametrize(
        ("items", "done", "seen"),
        [
            (0, 0, "No item was added yet."),
            (1, 0, "1 item was added so far, and more may follow."),
            (1, 1, "The only item is done; only the close is missing."),
            (1_500, 40, "1,500 items were added so far, and more may follow."),
            (1_500, 1_500, "All 1,500 items are done; only the close is missing."),
        ],
    )
    def test_never_completes_whatever_is_done(self, items, done, seen):
        batch = replace(OPEN, items=items)

        found = of(batch=batch, done_min=done, begun=bool(done), missing=())

        assert Code.DONE_UNSETTLED not in found
        assert found[Code.OPEN_NOT_CLOSED] == Finding(
            Code.OPEN_NOT_CLOSED,
            Severity.INFO,
            "The batch is still open",
            f"{seen} An open batch never completes.",
            "Close it once everything is added: `fanin close 7`, or leave the producer's `with` block. If the"
            " producer died, repeat it with its keys, or cancel the batch.",
            {"items": items},
        )

    @pytest.mark.parametrize(("now", "severity"), [(NOW, Severity.INFO), (NOW + HOUR, Severity.WARNING)])
    def test_a_producer_that_was_just_at_work_may_still_be(self, now, severity):
        assert of(now, OPEN)[Code.OPEN_NOT_CLOSED].severity is severity

    def test_a_batch_that_drains_is_not_missing_a_close_but_what_its_items_wait_for(self):
        drains = replace(OPEN, draining_at=NOW, max_items=5_000)

        found = of(batch=drains, done_min=40, begun=True)

        assert found.keys() == {Code.DRAINING, Code.SLOW}
        assert found[Code.DRAINING].detail.startswith("It has 100 items of at most 5,000 so far.")
        assert of(batch=drains).keys() >= {Code.DRAINING, Code.NEVER_SENT}
        assert of(batch=drains, done_min=100, missing=()).keys() == {Code.DONE_UNSETTLED}

    def test_a_buffer_is_always_open(self):
        batch = replace(BATCH, state=State.OPEN, kind=Kind.BUFFER)

        assert Code.OPEN_NOT_CLOSED not in of(batch=batch)


class TestNeverSent:
    SENT = (SentRow("q", 0, 40, NOW, NOW),)

    def test_items_without_a_note_beside_others_with_one(self):
        apart = (MissingRange(30, 40, ""), MissingRange(50, 60, ""), MissingRange(70, 2_000, ""))

        found = of(batch=replace(BATCH, items=2_000), sent=self.SENT, missing=apart)

        assert found == only(
            Code.NEVER_SENT,
            Severity.WARNING,
            "Items were probably never sent",
            "At least 1,940 missing items, from item 50 on, were added, and no note says that their messages"
            " were sent, as it does for other items of the batch.",
            f"Repeat the producer with the same keys: it sends what is missing under the same items. {LOST}",
            {"first": 50, "items": 1_940},
        )

    @pytest.mark.parametrize(
        ("now", "batch", "severity"),
        [
            (NOW, OPEN, Severity.INFO),
            (NOW, BATCH, Severity.WARNING),
            (NOW + STEP + 60_001, OPEN, Severity.WARNING),
            (NOW + HOUR, OPEN, Severity.ERROR),
            (NOW + HOUR, BATCH, Severity.ERROR),
        ],
    )
    def test_a_producer_at_work_is_a_little_ahead_of_its_notes(self, now, batch, severity):
        assert of(now, batch, sent=self.SENT)[Code.NEVER_SENT].severity is severity

    @pytest.mark.parametrize(("now", "severity"), [(NOW, Severity.INFO), (NOW + HOUR, Severity.WARNING)])
    def test_where_nothing_was_noted_nothing_is_claimed(self, now, severity):
        found = of(now, replace(BATCH, items=1_000))

        assert found == only(
            Code.NEVER_SENT,
            severity,
            "There is no note that messages were sent",
            "The batch has 1,000 items and none is done. `batch.send` notes what it sends, and there is no"
            " such note. If you send messages yourself, none is expected.",
            "Check that the producer has sent the messages, each with its item id.",
            {"items": 1_000},
        )

    def test_items_that_are_done_or_a_note_that_was_not_read_show_that_some_were_sent(self):
        assert Code.NEVER_SENT not in of(NOW + HOUR, begun=True)
        assert Code.NEVER_SENT not in of(NOW + HOUR, sent_more=True)

    def test_patterns_send_by_themselves(self):
        assert Code.NEVER_SENT not in of(NOW + HOUR, replace(BATCH, kind=Kind.SCATTER), sent=self.SENT)

    def test_held_items_were_sent_whether_or_not_a_note_says_so(self):
        assert Code.NEVER_SENT not in of(NOW + HOUR, held={40: "no"})
        assert Code.NEVER_SENT not in of(NOW + HOUR, held={1: "no"})

    def test_where_others_may_be_held_no_item_is_called_unsent(self):
        assert Code.NEVER_SENT in of(NOW + HOUR, sent=self.SENT)
        found = of(NOW + HOUR, sent=self.SENT, held={41: "no"}, held_more=True)
        assert Code.NEVER_SENT not in found
        assert found[Code.HELD].detail.startswith("At least 1 failed item waits")


def test_the_latest_attempt_is_told_with_its_error():
    # Given attempts at three items, of which the one at item 41 was the last
    retries = {
        40: RetryRow(40, 9, "no price", "work", NOW - 2_000),
        41: RetryRow(41, 2, "no such customer", "other", NOW - 1_000),
        42: RetryRow(42, 3, "no name", "work", NOW - 3_000),
    }

    assert of(retries=retries)[Code.RETRYING] == Finding(
        Code.RETRYING,
        Severity.WARNING,
        "Handling fails and is tried again",
        "At least 3 missing items were tried more than once. The last attempt, number 2 at item 41,"
        " failed: no such customer",
        "Fix the cause; the messages come again by themselves until the queue's limit of receives.",
        {"items": 3, "item": 41, "attempt": 2, "error": "no such customer", "queue": "other"},
    )
    assert of(retries={40: retries[40]})[Code.RETRYING].detail.startswith("At least 1 missing item was")


def test_held_items_wait_by_choice():
    assert of(NOW + HOUR, held={41: "no such customer", 40: "no price"}, begun=True) == only(
        Code.HELD,
        Severity.INFO,
        "Failed items are held",
        "2 failed items wait for a decision, because the batch was opened to hold them. Item 40"
        " failed: no price",
        "Fix the cause and send them again: `fanin redrive 7`. Or acknowledge those whose work is done, or"
        " let the batch complete with these failures: `fanin release 7`.",
        {"held": 2, "item": 40},
    )


def test_a_child_that_runs_is_where_to_ask_next():
    child = replace(BATCH, batch_id=8, state=State.OPEN)

    assert of(begun=True, children={40: child})[Code.CHILD_RUNNING] == Finding(
        Code.CHILD_RUNNING,
        Severity.INFO,
        "A child batch is running",
        "Item 40 waits for batch 8, which is open.",
        "Ask why that one is not finished: `fanin why 8`.",
        {"item": 40, "child": 8, "state": "open"},
    )


def test_items_of_which_one_has_a_child_need_no_messages():
    assert Code.NEVER_SENT in of(missing=(MissingRange(0, 9, "g"),))
    assert Code.NEVER_SENT not in of(missing=(MissingRange(0, 9, "g"),), children={0: BATCH})


class TestSlow:
    def test_says_rate_and_time_left(self):
        found = of(NOW + 1_000_000, begun=True, done_min=40, batch=replace(BATCH, touched_at=NOW + 900_000))

        assert found == only(
            Code.SLOW,
            Severity.INFO,
            "The batch is moving",
            "At least 40 of 100 items are done, and the last activity was at most 100 seconds ago. Since it"
            " was opened, about 0.04 items a second were done; at that rate the rest takes about 25 minutes.",
            "Wait, or give it more consumers.",
            {"done_min": 40, "items": 100, "items_per_second": "0.04", "eta_seconds": 1_500},
        )

    @pytest.mark.parametrize(
        ("done", "rate"), [(12_345, "12.3"), (99_960, "100"), (100_400, "100"), (123_456_700, "123457")]
    )
    def test_a_rate_has_three_digits_and_never_an_exponent(self, done, rate):
        batch = replace(BATCH, items=10**9, touched_at=NOW + 900_000)

        found = of(NOW + 1_000_000, batch, begun=True, done_min=done)[Code.SLOW]

        assert found.evidence["items_per_second"] == rate
        assert f"about {rate} items a second" in found.detail

    def test_is_not_said_of_a_batch_that_is_quiet_or_has_not_begun(self):
        assert Code.SLOW not in of(NOW + HOUR, begun=True, done_min=40)
        assert Code.SLOW not in of(NOW)

    def test_is_not_said_where_every_missing_item_is_held(self):
        held = dict.fromkeys(range(40, 100), "no price")

        assert set(of(NOW, begun=True, done_min=40, held=held)) == {Code.HELD}

    def test_after_a_minute_without_items_it_does_not_claim_that_the_batch_moves(self):
        later = NOW + STEP + 61_000

        assert of(NOW, begun=True)[Code.SLOW].title == "The batch is moving"
        assert of(later, begun=True)[Code.SLOW].title == "Items are done, but perhaps none lately"

    def test_the_last_activity_was_not_before_the_batch_was_opened(self):
        young = replace(BATCH, touched_at=NOW - 300_000)

        assert "at most 1 second ago" in of(NOW + 1_000, young, begun=True)[Code.SLOW].detail

    @pytest.mark.parametrize(("quiet", "passed"), [(500_000, False), (500_001, True)])
    def test_a_rest_that_should_be_done_by_now_has_perhaps_failed_once(self, quiet, passed):
        # Given a batch of which the rest takes 500 seconds at its rate, and a last activity that long ago
        now = NOW + 2_000_000
        batch = replace(BATCH, touched_at=now - quiet)

        found = of(now, batch, begun=True, done_min=80)[Code.SLOW]
        # Then it is said to come again, rather than to be done in a moment, once that time has passed
        assert found.evidence["eta_seconds"] == 500
        assert passed is found.detail.endswith(
            " takes about 8 minutes. That has passed: probably their messages have failed, and come again"
            " after the queue's visibility timeout. A first failure is not noted, the next one is."
        )
        assert passed is ("That has passed" in found.detail)
        assert passed is ("consumers log" in found.advice)
        assert passed is (found.title != "The batch is moving")

    @pytest.mark.parametrize(
        ("after", "done", "known"),
        [(1, 0, False), (-1, 40, False), (0, 40, False), (1, 40, True), (1, 1, True)],
    )
    def test_without_a_count_or_a_time_the_rate_is_not_known(self, after, done, known):
        found = of(NOW + after, begun=True, done_min=done)[Code.SLOW]

        assert found.detail.endswith(" ago. How fast cannot be told from so few reads.") is not known
        assert ("eta_seconds" in found.evidence) is known
        assert ("items_per_second" in found.evidence) is known
        assert (found.evidence["done_min"], found.evidence["items"]) == (done, 100)


class TestDeadline:
    @pytest.mark.parametrize(("left", "told"), [(600_000, True), (600_001, False)])
    def test_is_told_within_ten_minutes(self, left, told):
        assert (Code.DEADLINE_NEAR in of(batch=replace(BATCH, deadline=NOW + left))) is told

    @pytest.mark.parametrize(
        ("action", "then"),
        [(OnDeadline.COMPLETE, "complete with what is done"), (OnDeadline.TIME_OUT, "time out")],
    )
    def test_says_what_happens_then(self, action, then):
        near = replace(BATCH, deadline=NOW + 599_999, on_deadline=action)

        assert of(batch=near)[Code.DEADLINE_NEAR] == Finding(
            Code.DEADLINE_NEAR,
            Severity.INFO,
            "The deadline is near",
            f"The deadline is in 9 minutes; then the batch will {then}.",
            "Give it more consumers, or accept what the deadline does.",
            {"seconds_left": 599},
        )

    @pytest.mark.parametrize(("left", "seconds"), [(119_000, 119), (-5_000, 0)])
    def test_its_time_is_told_in_whole_seconds_and_is_never_in_the_past(self, left, seconds):
        found = of(batch=replace(BATCH, deadline=NOW + left))[Code.DEADLINE_NEAR]

        assert f"is in {seconds} seconds;" in found.detail
        assert found.evidence == {"seconds_left": seconds}

    @pytest.mark.parametrize(("left", "late"), [(1_000_000, False), (999_999, True)])
    def test_one_that_the_rate_will_miss_is_a_warning(self, left, late):
        # Given a batch of which the rest takes 1,000 seconds at its rate
        now = NOW + 1_000_000
        found = of(now, replace(BATCH, deadline=now + left), begun=True, done_min=50)
        # Then a deadline that leaves it less time is told long before
        assert (Code.DEADLINE_NEAR in found) is late
        if late:
            assert (found[Code.DEADLINE_NEAR].severity, found[Code.DEADLINE_NEAR].title) == (
                Severity.WARNING,
                "The deadline will probably be missed",
            )

    def test_of_a_batch_that_is_quiet_no_rate_is_known(self):
        later = NOW + HOUR
        far = replace(BATCH, deadline=later + 700_000)

        assert Code.DEADLINE_NEAR not in of(later, far, begun=True, done_min=10)


class TestUnexplained:
    def test_what_nothing_explains_is_said_to_be_so(self):
        found = of(NOW + STEP + HOUR, replace(BATCH, items=2_000), begun=True, done_max=40)

        assert found == only(
            Code.UNEXPLAINED,
            Severity.WARNING,
            "Items are missing, and nothing that fanin can see says why",
            "At least 1,960 items are missing, and there was no activity for 60 minutes at least.",
            "Check the consumers and their queue. What `batch.send` sends is noted, and its queue is looked"
            " at.",
            {"quiet_seconds": 3_600},
        )

    def test_right_after_activity_it_is_nothing_to_worry_about(self):
        found = of(sent_more=True, done_max=99)[Code.UNEXPLAINED]

        assert (found.severity, found.evidence) == (Severity.INFO, {"quiet_seconds": 0})
        assert found.detail.startswith("At least 1 item is missing")

    @pytest.mark.parametrize(
        ("seconds", "span"),
        [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2 minutes"),
            (7_199, "119 minutes"),
            (7_200, "2 hours"),
            (172_799, "47 hours"),
            (172_800, "2 days"),
            (86_400 * 1_000, "1,000 days"),
        ],
    )
    def test_a_time_is_told_in_the_largest_unit_of_which_there_are_two(self, seconds, span):
        found = of(NOW + STEP + seconds * 1_000, sent_more=True)[Code.UNEXPLAINED]

        assert f"no activity for {span} at least" in found.detail
        assert found.evidence == {"quiet_seconds": seconds}

    @pytest.mark.parametrize("left", [600_000, None])
    def test_neither_a_deadline_nor_what_could_not_be_seen_explains_anything(self, left):
        blind = Finding(Code.NOT_SEEN, Severity.INFO, "", "", "")
        batch = replace(BATCH, deadline=left and NOW + HOUR + left)

        found = of(NOW + HOUR, batch, begun=True, queues=[blind])

        assert set(found) - {Code.DEADLINE_NEAR} == {Code.NOT_SEEN, Code.UNEXPLAINED}
        assert (Code.DEADLINE_NEAR in found) is (left is not None)

    def test_what_a_queue_shows_explains_it(self):
        waiting = Finding(Code.WAITING, Severity.ERROR, "", "", "")

        assert set(of(NOW + HOUR, begun=True, queues=[waiting])) == {Code.WAITING}


class TestEnded:
    ENDED = replace(BATCH, items=2_000, state=State.CANCELLED, ended_at=NOW)

    @pytest.mark.parametrize(
        ("done_max", "left"),
        [
            (2_000, ""),
            (1_999, " At least 1 item was not done."),
            (40, " At least 1,960 items were not done."),
        ],
    )
    def test_only_that_is_said_with_what_was_not_done_if_that_is_known(self, done_max, left):
        waiting = Finding(Code.WAITING, Severity.ERROR, "", "", "")

        found = of(batch=self.ENDED, held={40: "no"}, queues=[waiting], done_min=40, done_max=done_max)

        assert found == only(
            Code.ENDED,
            Severity.INFO,
            "The batch has ended: it is cancelled",
            f"40 of 2,000 items are known to be done.{left}",
            "Nothing is waited for any more. `fanin missing 7` and `fanin failures 7` list what was not"
            " done.",
            {"state": "cancelled", "items": 2_000},
        )

    def test_of_one_that_nobody_gave_up_what_held_it_up_is_told_too_and_how_to_go_on(self):
        timed_out = replace(self.ENDED, state=State.TIMED_OUT, deadline=NOW)
        sent = (SentRow("https://sqs/1/work", 0, 2_000, NOW, NOW),)
        waiting = Finding(Code.WAITING, Severity.ERROR, "Nobody receives", "", "")

        found = of(batch=timed_out, sent=sent, queues=[waiting], done_min=40, done_max=40)

        assert found == {
            Code.WAITING: replace(waiting, severity=Severity.INFO),
            Code.ENDED: Finding(
                Code.ENDED,
                Severity.WARNING,
                "The batch has ended: it is timed_out",
                "40 of 2,000 items are known to be done. At least 1,960 items were not done. Its deadline was"
                " 2026-09-21T14:13:20.000Z. Consumers drop messages of a batch that has ended.",
                "Send what is missing as a new batch; `fanin missing 7` lists it. `fanin resend 7 FILE"
                " --queue https://sqs/1/work` does that with the file that `fanin fanout` sent. `fanin expire"
                " --batch 7` then removes this one, also from what `fanin attention` lists.",
                {"state": "timed_out", "items": 2_000},
            ),
        }
        scatter = of(batch=replace(timed_out, kind=Kind.SCATTER, state=State.ORPHANED), done_max=40)
        assert "fanin resend" not in scatter[Code.ENDED].advice
        again = replace(timed_out, retry_of=6)
        advice = of(batch=again, done_max=40)[Code.ENDED].advice
        assert "fanin resend" not in advice + Facts(again, NOW, 0, 9).lost()
        assert scatter[Code.ENDED].detail.endswith(" or its lifetime was over.")
