"""Deleting the messages of a batch that was removed."""

from __future__ import annotations

from fanin.app.failures import forgetting
from fanin.domain.failures import KeptMessage
from fanin.domain.marks import Failure
from tests.unit.app.conftest import World


def failed(world: World, count: int) -> int:
    batch, (group,) = world.batch(count)
    sizes = (1, 9_000)
    world.ledger.mark(
        [Failure(item, "torn", KeptMessage("x" * sizes[n % 2])) for n, item in enumerate(group)]
    ).whole()
    return batch.batch_id


def test_rows_and_objects_go_page_by_page(world: World, monkeypatch) -> None:
    # Given failures in rows and in the bucket
    monkeypatch.setattr(forgetting, "PAGE", 3)
    batch_id = failed(world, 8)

    # When they are forgotten
    left = forgetting.forget(world.ports, batch_id)

    # Then no message is left, the notes are, and a repeat does no harm
    assert left is None
    assert world.memory.claims.objects == {}
    assert world.ports.parts.messages(batch_id, range(8)) == {}
    assert len(world.ports.parts.failures(batch_id)[0]) == 8
    assert forgetting.forget(world.ports, batch_id) is None


def test_one_call_is_bounded_and_says_where_to_go_on(world: World, monkeypatch) -> None:
    monkeypatch.setattr(forgetting, "PAGE", 2)
    monkeypatch.setattr(forgetting, "PAGES", 2)
    batch_id = failed(world, 6)

    cursor = forgetting.forget(world.ports, batch_id)

    assert set(world.ports.parts.messages(batch_id, range(6))) == {4}
    assert cursor is not None
    assert forgetting.forget_page(world.ports, batch_id, cursor) is None
    assert world.memory.claims.objects == {}


def test_one_call_deletes_the_messages_of_five_thousand_failures() -> None:
    """So many as the removal of a batch promises; a batch with more is left to the worker."""
    assert forgetting.PAGE * forgetting.PAGES == 5_000


def test_a_failure_without_a_message_asks_nothing_of_the_bucket(world: World) -> None:
    batch, (group,) = world.batch(2)
    world.ledger.mark([Failure(item, "x") for item in group]).whole()

    forgetting.forget(world.ports, batch.batch_id)

    assert world.accesses.sends["claims.delete"] == 0
