"""Which actions are offered for what."""

from __future__ import annotations

from dataclasses import replace

from fanin.console.actions.subjects import BATCH, BUFFER, REGISTRATION, ROUTE, SUBJECTS, offered
from fanin.domain.batch import Batch, Kind, Mode, OnFailure, State
from tests.unit.console.actions.conftest import Makes


def names(batch: Batch) -> list[str]:
    return [one.name for one in offered(BATCH, batch)]


def test_buttons_of_a_batch_follow_its_state(makes: Makes) -> None:
    batch, _ = makes.batch(3)
    assert names(batch) == ["close", "verify", "cancel"]
    assert names(replace(batch, state=State.CLOSED)) == ["verify", "cancel"]
    ended = replace(batch, state=State.COMPLETE, failed_more=False)
    assert names(ended) == ["verify", "remove"]
    assert names(replace(ended, failed=2)) == ["redrive", "verify", "remove"]
    assert names(replace(ended, targets=1)) == ["verify", "redeliver", "remove"]


def test_a_batch_that_holds_can_be_redriven_and_released_while_it_lives(makes: Makes) -> None:
    batch = replace(makes.batch(3)[0], on_failure=OnFailure.HOLD, held=2)
    assert names(batch) == ["close", "redrive", "release", "verify", "cancel"]
    assert names(replace(batch, state=State.TIMED_OUT)) == ["redrive", "verify", "remove"]


def test_patterns_have_fewer(makes: Makes) -> None:
    batch = makes.batch(3)[0]
    assert names(replace(batch, mode=Mode.ESTIMATED)) == ["close", "cancel"]
    assert names(replace(batch, kind=Kind.BUFFER)) == ["verify"]
    assert names(replace(batch, kind=Kind.SCATTER)) == ["verify", "cancel"]
    assert names(replace(batch, kind=Kind.FRAME, state=State.COMPLETE, failed=3)) == ["verify", "remove"]


def test_each_has_a_page_of_its_own() -> None:
    assert BATCH.segments({"batch_id": "7", "action": "close"}) == ("batches", "7")
    assert BUFFER.segments({"name": "stage"}) == ("buffers", "stage")
    assert ROUTE.segments({"name": "orders"}) == ("routes", "orders")
    assert REGISTRATION.segments({"topic": "shop", "name": "a"}) == ("directory", "shop", "a")
    assert len({one.kind for one in SUBJECTS}) == len(SUBJECTS)
