"""What a fan-out does with a batch that has ended; the fan-out itself is tested on Spark."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from fanin.adapters.memory.world import FixedClock
from fanin.domain.batch import Batch, CloseWhen, OnDeadline, OpenBatch, State
from fanin.errors import InvalidRequest
from fanin.spark.fanout import driver, summary
from fanin.spark.fanout.driver import FanOutPlan, fan_out
from fanin.spark.fanout.failed_rows import EarlierBatch, FailedRows, retrying
from fanin.spark.fanout.folder import SentMessages
from fanin.spark.fanout.opening import open_batch
from fanin.spark.fanout.staging import Staging
from fanin.spark.inputs.formats import Dataset
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.rejects import RejectLimit
from tests.unit.spark.conftest import MemoryStack
from tests.unit.spark.runtime.file_systems import FileSystem

STAGING = Staging("/staging", "rows-1", StructType(), {0: 3, 2: 4})


def plan(rows: object = None, **request: Any) -> FanOutPlan:
    nobody: Any = rows
    return FanOutPlan(
        rows=nobody,
        body=None,
        keys=None,
        queue="https://queue",
        folder="/staging",
        key=None,
        left_out="/staging/rejects",
        request=OpenBatch(**request),
        workers=8,
        fair=False,
        close=CloseWhen.NOW,
        max_rejects=RejectLimit(),
        opened=lambda _: None,
        progress=False,
    )


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"limit": 5}, "cannot have a limit"),
        ({"queue": "work"}, "is not the URL of a queue"),
        ({"user_kay": "me"}, "a batch has no option 'user_kay'; it may have "),
        ({"deadline": timedelta(hours=2)}, "deadline must be a point in time"),
        ({"workers": 0}, "workers must be a whole number of at least 1"),
        ({"staging": None}, "staging must be a path"),
        ({"body": 5}, "body must be the name of a column, not 5"),
        ({"keys": ["a"]}, "keys must be the name of a column"),
    ],
)
def test_wrong_arguments_are_refused_before_spark_or_the_stack_is_asked(wrong, why):
    with pytest.raises(InvalidRequest, match=why):
        fan_out(Dataset("/rows"), **{"queue": "https://queue", "staging": "/staging", **wrong})


def test_nothing_is_sent_of_a_batch_that_ended_before_the_first_message(stack, monkeypatch):
    # Given a batch that somebody ends when a driver has added its items, and is about to say that it sends;
    # whoever looks before it says so takes it that nothing is sent
    begin = SentMessages.begin

    def too_late(messages: SentMessages) -> None:
        (batch,) = stack.ledger().list(State.OPEN).batches
        stack.ledger().cancel(batch.batch_id)
        begin(messages)

    def never(*_arguments: object) -> None:
        raise AssertionError("nothing may be sent any more")

    monkeypatch.setattr(SentMessages, "begin", too_late)
    monkeypatch.setattr(driver, "send", never)
    monkeypatch.setattr(summary, "write_rejects", lambda *_: {})
    # Then the driver sends nothing, and says what to do
    told = driver._send(FileSystem().session(), stack, plan(), STAGING)
    assert (told.state, told.sent) == ("cancelled", None)
    assert "--and-pending" in str(told.detail)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may send, and there are no rejects."""

    def never(*_arguments: object) -> None:
        raise AssertionError("nothing may be sent any more")

    monkeypatch.setattr(driver, "send", never)
    monkeypatch.setattr(summary, "write_rejects", lambda *_: {})
    monkeypatch.setattr(summary, "_totals", lambda *_: (7, 1, 0))


def completed_by_its_deadline(stack: MemoryStack, request: OpenBatch) -> Batch:
    """The batch of a fan-out whose driver died when it had added the items, after its deadline."""
    clock = stack.memory.clock
    assert isinstance(clock, FixedClock)
    batch, _ = open_batch(stack, request, "fan-out/rows-1", STAGING, lambda _: None)
    clock.advance(61_000)
    ended = stack.ledger().meet_deadline(batch.batch_id)
    assert ended is not None
    assert (ended.state, ended.partial) == (State.COMPLETE, True)
    return ended


def session_of(system: FileSystem) -> Any:
    """A session that reads results without Spark."""
    session = system.session()
    session.read = SimpleNamespace(schema=lambda _: SimpleNamespace(parquet=lambda _: None))
    return session


def note(system: FileSystem, batch: Batch, noted: str) -> None:
    """Note how many of a batch's messages a driver that died has sent."""
    messages = SentMessages(Folder(system.session(), "/staging"), batch.batch_id)
    if noted != "none":
        messages.begin()
    if noted == "all":
        messages.finish(messages.new())


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("noted", ["none", "some", "all"])
def test_a_redrive_that_its_deadline_completed_is_well_only_if_all_of_it_was_sent(stack, monkeypatch, noted):
    # Given the driver of a redrive that died, and a deadline that completed its batch
    system = FileSystem()
    session = session_of(system)
    first = stack.ledger().cancel(stack.ledger().open(OpenBatch()).batch_id)
    earlier = EarlierBatch.of(first)
    monkeypatch.setattr(driver, "take_failed_rows", lambda *_: (replace(STAGING, notes=earlier._asdict()), 0))
    rows = FailedRows(first.batch_id, "/first")
    asked = plan(
        rows,
        retry_of=first.batch_id,
        deadline=stack.memory.clock.now() + 60_000,
        on_deadline=OnDeadline.COMPLETE,
    )
    batch = completed_by_its_deadline(stack, retrying(asked.request, earlier))
    note(system, batch, noted)
    # When it is run again, then it opens no other batch, and says how to send the rest unless all was sent
    told = driver._retry(session, stack, asked, rows)
    assert (told.batch_id, told.state, told.retry_of) == (batch.batch_id, "complete", first.batch_id)
    assert told.ok is (noted == "all")
    assert f"--retry-of {batch.batch_id} --failed-from /staging" in str(told.detail) or noted == "all"
