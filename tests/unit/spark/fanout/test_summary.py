"""What a fan-out says at its end; its numbers are tested on Spark."""

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.errors import AnalysisException

from fanin.adapters.memory.world import FixedClock
from fanin.domain.batch import Batch, OnDeadline, OpenBatch
from fanin.domain.marks import Failure
from fanin.errors import ServiceUnavailable
from fanin.spark.fanout import summary
from fanin.spark.fanout.summary import WAITS, SentSoFar, unsent, write_rejects
from fanin.spark.runtime import rejects
from tests.unit.spark.conftest import MemoryStack


def some_failed(stack: MemoryStack) -> Batch:
    """A batch with an item that has failed, and which was cancelled."""
    ledger = stack.ledger()
    batch_id = ledger.open(OpenBatch()).batch_id
    ledger.mark([Failure(ledger.add(batch_id, 10)[2], "no such customer")]).whole()
    return ledger.cancel(batch_id)


def test_what_is_left_of_a_batch_that_was_ended_is_told(stack):
    # Given a batch that goes on, one without items, and one with some
    ledger = stack.ledger()
    live, empty, some = ledger.open(OpenBatch()), ledger.open(OpenBatch()), some_failed(stack)
    empty = ledger.cancel(empty.batch_id)
    # Then each says what to do, if there is anything
    assert unsent(live, "/again", SentSoFar.SOME) is None
    assert unsent(ledger.close(live.batch_id), "/again", SentSoFar.SOME) is None
    assert "none of its rows was sent; to send them, name another --key" in told(empty, SentSoFar.NONE)
    command = f"--retry-of {some.batch_id} --failed-from /again --and-pending"
    assert command in told(some, SentSoFar.ALL)
    assert "is cancelled;" in told(some, SentSoFar.ALL)
    assert "is cancelled, and perhaps not all of its rows were sent;" in told(some, SentSoFar.SOME)
    assert "is cancelled, and none of its rows was sent;" in told(some, SentSoFar.NONE)


def test_a_batch_that_its_deadline_completed_before_all_was_sent_is_told(stack):
    # Given a batch that its deadline completed while items were pending, and one whose items are all done
    ledger, clock = stack.ledger(), stack.memory.clock
    assert isinstance(clock, FixedClock)
    asked = OpenBatch(deadline=clock.now() + 60_000, on_deadline=OnDeadline.COMPLETE)
    batch, done = ledger.open(asked), ledger.open(asked)
    ledger.add(batch.batch_id, 3)
    ledger.mark([ledger.add(done.batch_id, 1)[0]]).whole()
    done = ledger.close(done.batch_id)
    clock.advance(61_000)
    partial = ledger.meet_deadline(batch.batch_id)
    assert partial is not None
    # Then it is well only if all was sent; what is done was sent, whatever is noted of it
    assert "was completed by its deadline, and none of its rows was sent" in told(partial, SentSoFar.NONE)
    assert "completed by its deadline, and perhaps not all of its rows were sent" in told(
        partial, SentSoFar.SOME
    )
    assert unsent(partial, "/again", SentSoFar.ALL) is None
    assert all(unsent(done, "/again", sent) is None for sent in SentSoFar)


def test_messages_that_the_queue_refused_were_not_sent(stack, monkeypatch):
    # Given a batch that its deadline completed, whose run has noted what it sent: all, or all but one
    ledger, clock = stack.ledger(), stack.memory.clock
    assert isinstance(clock, FixedClock)
    asked = OpenBatch(deadline=clock.now() + 60_000, on_deadline=OnDeadline.COMPLETE)
    opened = ledger.open(asked)
    ledger.add(opened.batch_id, 3)
    clock.advance(61_000)
    batch = ledger.meet_deadline(opened.batch_id)
    assert batch is not None
    monkeypatch.setattr(summary, "_refused", lambda *_: "refused")
    spark: Any = MagicMock()
    staging: Any = MagicMock(rows=3, left=0, attempt="rows")
    files: Any = MagicMock(path="/again", finished=lambda _: False)
    files.read.return_value = '{"results": "sent-1"}'
    for refused in (0, 1):
        monkeypatch.setattr(summary, "_totals", lambda *_, count=refused: (3 - count, 1, count))
        monkeypatch.setattr(summary, "write_rejects", lambda *_, count=refused: {"unsent": count})
        # When it is summarized
        found = summary.summarize(spark, files, batch, staging, "/again/rejects")
        # Then it is well only if none was refused
        assert found.ok is not bool(refused)
    # And the note of the results was read once each time
    assert files.read.call_count == 2


def told(batch: Batch, sent: SentSoFar) -> str:
    return str(unsent(batch, "/again", sent))


class Place:
    """The folder of rejects, to which another run writes as well.

    Attributes:
        there: what is there, reason → rows.
        meanwhile: for each time that rejects are written, what happens; afterwards all is well.
        waited: how often a run has waited.
    """

    def __init__(self, *meanwhile: Callable[[], object]) -> None:
        self.there: dict[str, int] = {}
        self.meanwhile = list(meanwhile)
        self.waited = 0

    def write(self, _left: object, _folder: str, counted: dict[str, int]) -> dict[str, int]:
        self.there = dict(counted)
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return counted

    def is_there(self, _spark: object, _folder: str, wanted: dict[str, int]) -> bool:
        return self.there == wanted

    def wait(self, seconds: float) -> None:
        assert 0 <= seconds <= max(WAITS)
        self.waited += 1

    def delete(self) -> None:
        self.there = {}

    def fail(self) -> None:
        raise AnalysisException("PATH_NOT_FOUND")


def written(place: Place, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    monkeypatch.setattr(rejects, "write_rejects", place.write)
    monkeypatch.setattr(summary, "_is_there", place.is_there)
    monkeypatch.setattr(rejects, "count_by_reason", lambda _: {"null": 3})
    left: Any = object()
    return write_rejects(None, left, "/rejects", wait=place.wait)


def test_rejects_that_another_run_deleted_are_written_again(monkeypatch):
    place = Place()
    place.meanwhile = [place.delete]
    assert written(place, monkeypatch) == place.there == {"null": 3}
    assert place.waited == 1


def test_rejects_that_another_run_has_written_instead_are_left_alone(monkeypatch):
    # Given a write that fails since another run has committed the same rejects
    place = Place()
    place.meanwhile = [place.fail]
    assert written(place, monkeypatch) == {"null": 3}
    assert place.waited == 0


def test_rejects_that_can_never_be_written_are_an_error_with_what_to_do(monkeypatch):
    place = Place()

    def fail() -> None:
        place.delete()
        place.fail()

    place.meanwhile = [fail] * (len(WAITS) + 1)
    with pytest.raises(ServiceUnavailable, match=r"PATH_NOT_FOUND.* wait for its end") as refused:
        written(place, monkeypatch)
    assert "/rejects" in str(refused.value)
    assert place.waited == len(WAITS)


def test_rejects_whose_folder_cannot_be_used_say_what_to_do(monkeypatch):
    place = Place()

    def fail() -> None:
        place.delete()
        raise AnalysisException("Parent path is not a directory: file:/a.csv")

    place.meanwhile = [fail] * (len(WAITS) + 1)
    with pytest.raises(ServiceUnavailable, match=r"/rejects: .* file:/a\.csv; name another folder\. If"):
        written(place, monkeypatch)
