"""The batch that a fan-out opens; the fan-out itself is tested on Spark."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from fanin.adapters.memory.world import FixedClock
from fanin.domain.batch import Batch, OnDeadline, OpenBatch, State
from fanin.errors import IdempotencyKeyReused, InvalidItemId, InvalidRequest
from fanin.spark.fanout import driver
from fanin.spark.fanout.bodies import Dataset
from fanin.spark.fanout.driver import FanOut, _opened, fan_out
from fanin.spark.fanout.earlier_batch import EarlierBatch, retrying
from fanin.spark.fanout.failed_rows import FailedRows, Retried
from fanin.spark.fanout.shared_folder import SentMessages
from fanin.spark.fanout.staging import Staging
from fanin.spark.runtime.files import Folder
from tests.unit.spark.conftest import MemoryStack
from tests.unit.spark.runtime.file_systems import FileSystem

STAGING = Staging("/staging", "rows-1", StructType(), {0: 3, 2: 4})


def plan(**request: object) -> FanOut:
    return FanOut(Dataset("/rows"), "https://queue", "/staging", request=OpenBatch(**request))  # type: ignore[arg-type]


def test_it_is_refused_before_spark_or_the_stack_is_asked() -> None:
    with pytest.raises(InvalidRequest, match="cannot have a limit"):
        fan_out(None, None, plan(limit=5))  # type: ignore[arg-type]


def test_what_is_no_queue_is_refused_before_spark_or_the_stack_is_asked() -> None:
    with pytest.raises(InvalidRequest, match="is not the URL of a queue"):
        fan_out(None, None, FanOut(Dataset("/rows"), "work", "/staging"))  # type: ignore[arg-type]


def test_every_option_of_the_request_reaches_the_batch(stack: MemoryStack) -> None:
    # Given a request with all that a fan-out can do
    parent = stack.tracker().open().batch_id
    item = stack.tracker().add(parent, 1)[0]
    deadline = stack.memory.clock.now() + 3_600_000
    asked = {
        "user_key": "mine",
        "deadline": deadline,
        "on_deadline": OnDeadline.COMPLETE,
        "parent_item": item,
    }

    batch, group = _opened(stack, plan(**asked, metadata={"a": "b"}, idle_ttl=600, lifetime=7_200), STAGING)  # type: ignore[arg-type]

    assert {name: getattr(batch, name) for name in asked} == asked
    assert (batch.open_idle_ttl, batch.closed_idle_ttl) == (600, 600)
    assert batch.expires_at * 1000 - batch.created_at >= 7_200_000
    assert batch.metadata == {"a": "b", "staging": "rows-1"}
    # And it has an item for each row that was staged
    assert group is not None
    assert stack.tracker().status(batch.batch_id).batch.items == 7


def test_the_batch_is_told_before_it_has_items(stack: MemoryStack) -> None:
    told: list[tuple[int, int]] = []

    def opened(batch: Batch) -> None:
        told.append((batch.batch_id, stack.tracker().status(batch.batch_id).batch.items))

    batch, _ = _opened(stack, plan(), STAGING, opened)  # type: ignore[arg-type]

    assert told == [(batch.batch_id, 0)]


def test_a_second_driver_gets_the_same_batch_and_the_same_items(stack: MemoryStack) -> None:
    first, again = (_opened(stack, plan(user_key="mine"), STAGING) for _ in range(2))  # type: ignore[arg-type]
    assert (first[0].batch_id, first[1]) == (again[0].batch_id, again[1])
    assert stack.tracker().status(first[0].batch_id).batch.items == 7


def test_another_parent_under_the_same_key_is_another_fan_out(stack: MemoryStack) -> None:
    parent = stack.tracker().open().batch_id
    items = stack.tracker().add(parent, 2)
    _opened(stack, plan(parent_item=items[0]), STAGING)  # type: ignore[arg-type]
    with pytest.raises(IdempotencyKeyReused):
        _opened(stack, plan(parent_item=items[1]), STAGING)  # type: ignore[arg-type]


def test_a_parent_that_was_never_issued_is_refused(stack: MemoryStack) -> None:
    with pytest.raises(InvalidItemId):
        _opened(stack, plan(parent_item="nonsense"), STAGING)  # type: ignore[arg-type]


def test_without_rows_or_after_the_close_there_is_nothing_to_add(stack: MemoryStack) -> None:
    empty = Staging("/staging", "rows-2", StructType(), {})
    batch, group = _opened(stack, plan(), empty)  # type: ignore[arg-type]
    assert (group, stack.tracker().status(batch.batch_id).batch.items) == (None, 0)

    batch, _ = _opened(stack, plan(), STAGING)  # type: ignore[arg-type]
    stack.tracker().close(batch.batch_id)
    assert _opened(stack, plan(), STAGING)[1] is None  # type: ignore[arg-type]


def test_nothing_is_sent_of_a_batch_that_ended_before_the_first_message(
    stack: MemoryStack, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    monkeypatch.setattr(driver, "write_rejects", lambda *_: {})

    # Then the driver sends nothing, and says what to do
    watching = driver.Watching(lambda _: None, False)
    told = driver._send(FileSystem().session(), stack, plan(), STAGING, watching)  # type: ignore[arg-type]
    assert (told["state"], told["sent"]) == ("cancelled", None)
    assert "--and-pending" in told["detail"]


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may send, and there are no rejects."""

    def never(*_arguments: object) -> None:
        raise AssertionError("nothing may be sent any more")

    monkeypatch.setattr(driver, "send", never)
    monkeypatch.setattr(driver, "write_rejects", lambda *_: {})
    monkeypatch.setattr(driver, "_totals", lambda _: ({"sent": 7, "requests": 1}, 0))


def completed_by_its_deadline(stack: MemoryStack, plan: FanOut) -> Batch:
    """The batch of a fan-out whose driver died when it had added the items, after its deadline."""
    clock = stack.memory.clock
    assert isinstance(clock, FixedClock)
    batch, _ = _opened(stack, plan, STAGING)  # type: ignore[arg-type]
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
@pytest.mark.parametrize(
    ("noted", "why"),
    [
        ("none", "none of its rows was sent"),
        ("some", "perhaps not all of its rows were sent"),
        ("all", None),
    ],
)
def test_a_batch_that_its_deadline_completed_is_well_only_if_all_of_it_was_sent(
    stack: MemoryStack, noted: str, why: str | None
) -> None:
    # Given a driver that died, and a deadline that completed its batch
    system = FileSystem()
    session = session_of(system)
    asked = plan(deadline=stack.memory.clock.now() + 60_000, on_deadline=OnDeadline.COMPLETE)
    batch = completed_by_its_deadline(stack, asked)
    note(system, batch, noted)

    # When it is run again, then it says what to do unless all was sent
    told = driver._send(session, stack, asked, STAGING, driver.Watching(lambda _: None, False))  # type: ignore[arg-type]
    assert told["state"] == "complete"
    assert ("detail" in told) is (why is not None)
    if why:
        assert why in told["detail"]
        command = f"--retry-of {batch.batch_id} --failed-from /staging --and-pending and a new --staging"
        assert command in told["detail"]


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("noted", ["none", "some", "all"])
def test_a_redrive_that_its_deadline_completed_is_well_only_if_all_of_it_was_sent(
    stack: MemoryStack, monkeypatch: pytest.MonkeyPatch, noted: str
) -> None:
    # Given the driver of a redrive that died, and a deadline that completed its batch
    system = FileSystem()
    session = session_of(system)
    first = stack.ledger().cancel(stack.ledger().open(OpenBatch()).batch_id)
    earlier = EarlierBatch.of(first)
    monkeypatch.setattr(driver, "take_failed_rows", lambda *_: Retried(earlier, STAGING, 0))
    request = OpenBatch(
        retry_of=first.batch_id,
        deadline=stack.memory.clock.now() + 60_000,
        on_deadline=OnDeadline.COMPLETE,
    )
    rows = FailedRows(first.batch_id, "/first")
    asked = FanOut(rows, "https://queue", "/staging", request=request)
    batch = completed_by_its_deadline(stack, replace(asked, request=retrying(request, earlier)))
    note(system, batch, noted)

    # When it is run again, then it opens no other batch, and says how to send the rest unless all was sent
    told = driver._retry(session, stack, asked, rows, driver.Watching(lambda _: None, False))  # type: ignore[arg-type]
    assert (told["batch_id"], told["state"], told["retry_of"]) == (batch.batch_id, "complete", first.batch_id)
    assert ("detail" in told) is (noted != "all")
    assert f"--retry-of {batch.batch_id} --failed-from /staging" in told.get("detail", "") or noted == "all"
