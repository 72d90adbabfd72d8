"""Scatter-gather against a plain model; and proof that a broken one would not pass."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from fanin.app.ledger.service import LedgerService
from fanin.app.scatters import records as scatter_records
from fanin.app.scatters import replies
from fanin.app.scatters.replies import First, ReplyStore
from fanin.app.services import Patterns
from fanin.domain.batch import Batch
from fanin.domain.marks import Done
from fanin.domain.scatter import Reply
from tests.stateful.scatter_machine import ScatterMachine
from tests.stateful.test_machine import assert_found_out, quick


@pytest.fixture(autouse=True)
def _two_recipients_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scatter_records, "CHUNK", 2)


def test_scatters_do_as_plain_sets_do():
    run_state_machine_as_test(ScatterMachine, settings=quick(50, 40))


@pytest.mark.soak(long=True)
@pytest.mark.parametrize("width", [2, 3, 64])
def test_scatters_do_so_for_a_long_time(width):
    machine = type("Wide", (ScatterMachine,), {"width": width})
    run_state_machine_as_test(machine, settings=settings(quick(1_000, 60), derandomize=False))


# Tests of the test: scatters that are wrong in one step each.


def last_reply_wins(self: ReplyStore, batch: Batch, ordinal: int, reply: Reply) -> First:
    value = {"at": 0, "payload": reply.payload}
    place = replies.namespace(batch.batch_id, ordinal)
    name = replies.reply_name(ordinal)
    self._ports.records.put(place, name, value, expires_at=batch.expires_at)
    return First(same=True, totals=reply.totals)


def bit_first(self: ReplyStore, batch: Batch, ordinal: int, reply: Reply) -> First:
    """Mark, and then store."""
    if not batch.state.terminal:
        LedgerService(self._ports, Patterns(self._ports)).mark([Done(reply.item)])
    return store(self, batch, ordinal, reply)


def as_remembered(self: LedgerService, batch_ids: set[int]) -> dict[int, Batch]:
    """Read past what the ledger remembers, so that it marks what has ended."""
    return self.ports.batches.read(batch_ids)


store = ReplyStore.keep


@pytest.mark.soak
@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (ReplyStore, "keep", last_reply_wins),
        (ReplyStore, "keep", bit_first),
        (LedgerService, "refresh", as_remembered),
    ],
    ids=lambda part: part.__name__ if callable(part) else None,
)
def test_a_broken_scatter_is_found_out(monkeypatch, where, name, mutant):
    monkeypatch.setattr(where, name, mutant)

    assert_found_out(ScatterMachine, 40)
