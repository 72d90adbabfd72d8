"""Scatter-gather against a plain model; and proof that a broken one would not pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from fanin.adapters.memory import MemoryChannels
from fanin.app.ledger.service import LedgerService
from fanin.app.scatters import correlation, replies
from fanin.app.scatters import records as scatter_records
from fanin.app.scatters import start as scatter_start
from fanin.app.scatters.gather import Gather
from fanin.app.scatters.replies import First, Replies, ReplyStore
from fanin.app.scatters.service import ScatterService
from fanin.app.services import patterns
from fanin.domain import ids
from fanin.domain.batch import Batch
from fanin.domain.marks import Done
from fanin.domain.scatter import Reply
from tests.stateful.scatter_machine import ScatterMachine
from tests.stateful.test_machine import assert_found_out, quick


@pytest.fixture(autouse=True)
def _two_recipients_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scatter_records, "CHUNK", 2)


def test_scatters_do_as_plain_sets_do() -> None:
    run_state_machine_as_test(ScatterMachine, settings=quick(50, 40))


@pytest.mark.soak(long=True)
@pytest.mark.parametrize("width", [2, 3, 64])
def test_scatters_do_so_for_a_long_time(width: int) -> None:
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
        LedgerService(self._ports, patterns(self._ports)).mark([Done(reply.item)])
    return store(self, batch, ordinal, reply)


def as_remembered(self: LedgerService, batch_ids: set[int]) -> dict[int, Batch]:
    """Read past what the ledger remembers, so that it marks what has ended."""
    return self.ports.batches.read(batch_ids)


def count_firsts(self: ReplyStore, batch: Batch, receipt: Any) -> None:
    """Count no repeat, and look only then."""
    if receipt.first:
        count(self, batch, receipt)


def never_again(_self: Gather, _ledger: object, _batch: object) -> None:
    """Give up at the first deadline."""


def for_ever(self: Gather, ledger: Any, batch: Batch) -> Batch | None:
    """Forget how often it was sent again."""
    return postpone(self, ledger, replace(batch, retries=0))


def nobody_lives(_ports: object, _held: object) -> bool:
    """Take a correlation id from whoever holds it."""
    return False


def believe_it_was_sent(_records: object, _batch: Batch) -> bool:
    """Take a scatter that is there for one whose jobs are."""
    return True


def to_all(self: LedgerService, batch_id: int, start: int, stop: int) -> set[int]:
    """Count everybody as missing."""
    (batch,) = self.ports.batches.read([batch_id]).values()
    return set(range(start, min(stop, batch.items)))


def refusals_of_all(self: MemoryChannels, messages: Any) -> Any:
    """Let the job fail whose message one queue refuses."""
    answers = offer(self, messages)
    assert not set(answers.refused.values()) - {"there is no such queue"}
    return answers


def new_ids(self: ScatterService, batch_id: int, chunk: int, wave: int) -> Any:
    """Name the recipients of a later wave by other items."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ids, "issue", lambda batch, first, count, salt: issue(batch, first, count + (wave > 0), salt)
        )
        return send(self, batch_id, chunk, wave)


issue = ids.issue
send = ScatterService.send
offer = MemoryChannels.offer
store = ReplyStore.keep
count = Replies._count
postpone = Gather.postpone


@pytest.mark.soak
@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (ReplyStore, "keep", last_reply_wins),
        (ReplyStore, "keep", bit_first),
        (Replies, "_count", count_firsts),
        (LedgerService, "refresh", as_remembered),
        (LedgerService, "pending", to_all),
        (Gather, "postpone", never_again),
        (Gather, "postpone", for_ever),
        (correlation, "_alive", nobody_lives),
        (scatter_start, "was_sent", believe_it_was_sent),
        (ScatterService, "send", new_ids),
        (MemoryChannels, "offer", refusals_of_all),
    ],
    ids=lambda part: part.__name__ if callable(part) else None,
)
def test_a_broken_scatter_is_found_out(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, mutant: Any
) -> None:
    monkeypatch.setattr(where, name, mutant)

    assert_found_out(ScatterMachine, 40)
