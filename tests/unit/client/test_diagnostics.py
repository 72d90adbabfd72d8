import logging
from types import SimpleNamespace

import pytest

from fanin import SentItems, Tracker
from fanin.client.diagnostics import DiagnosticCalls
from fanin.domain.diagnosis import Diagnosis
from fanin.errors import Throttled
from fanin.types import Retry


class Failing:
    """Diagnostics that fail."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0

    def why(self, batch_id: int) -> Diagnosis:
        raise self.error

    def note_sent(self, batch_id: int, sent: SentItems) -> None:
        self.calls += 1
        raise self.error

    def note_retries(self, retries: object) -> None:
        self.calls += 1
        raise self.error


@pytest.mark.parametrize("error", [Throttled("busy"), RuntimeError("a defect")])
def test_a_note_that_cannot_be_written_is_logged_and_harms_nothing(error, caplog):
    failing = Failing(error)
    calls = DiagnosticCalls()
    calls.services = SimpleNamespace(diagnostics=failing)

    with caplog.at_level(logging.WARNING, "fanin"):
        calls.note_sent(7, SentItems("q", 0, 1))
        calls.note_retries([Retry("7:g:0", 2, "no")] * 2_500)

    assert failing.calls == 2
    assert [record.message for record in caplog.records] == [
        f"batch 7: it could not be noted what was sent: {error}",
        f"2500 failed attempts could not be noted: {error}",
    ]


def test_more_attempts_than_one_call_takes_go_in_several():
    tracker = Tracker.in_memory()
    group = tracker.add(tracker.open().batch_id, 1_500)

    tracker.note_retries([Retry(item, 2, f"error {n}") for n, item in enumerate(group)])
    tracker.ack(group[:1_490])

    (finding,) = [one for one in tracker.why(group.batch_id).findings if one.code == "retrying"]
    assert finding.evidence["items"] == 10


def test_one_attempt_that_is_refused_keeps_no_other_from_being_noted(caplog):
    # Given a window in which a message names a batch that is gone, and one a forged item
    tracker = Tracker.in_memory()
    group = tracker.add(tracker.open().batch_id, 8)
    prefix, _, check = group[0].rpartition(":")
    forged = [
        Retry("7:g:0", 2, "no"),
        Retry(f"{prefix[:-1]}{'A' if prefix[-1] != 'A' else 'B'}:{check}", 2, "no"),
    ]

    with caplog.at_level(logging.WARNING, "fanin"):
        tracker.note_retries([*[Retry(item, 2, "broken") for item in group], *forged])

    (finding,) = [one for one in tracker.why(group.batch_id).findings if one.code == "retrying"]
    assert finding.evidence["items"] == 8
    assert [record.message.partition(" failed")[0] for record in caplog.records] == ["1", "1"]
