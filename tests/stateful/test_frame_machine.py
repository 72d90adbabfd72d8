"""Guaranteed delivery against what must always be true; and proof that a broken one would not pass."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from fanin.adapters.memory.words import MemoryWords
from fanin.app.ports.words import Claimed, ItemClaim
from fanin.client.frames.envelopes import Envelope
from fanin.client.frames.receiver import Disposition, IdempotentReceiver, TakenLease
from fanin.client.frames.repeat_buffer import SqliteRepeatBuffer
from fanin.client.frames.repeater import Repeater
from fanin.domain.frames import Ticket
from tests.stateful.frame_machine import FrameMachine
from tests.stateful.test_machine import assert_found_out, quick


@pytest.fixture(autouse=True)
def _no_log(caplog: pytest.LogCaptureFixture) -> None:
    """What fails here is logged thousands of times."""
    caplog.set_level(logging.CRITICAL, "fanin")


def test_frames_are_delivered_whatever_happens() -> None:
    run_state_machine_as_test(FrameMachine, settings=quick(60, 50))


@pytest.mark.soak(long=True)
@pytest.mark.parametrize("width", [2, 3, 64])
def test_frames_are_delivered_so_for_a_long_time(width: int) -> None:
    machine = type("Wide", (FrameMachine,), {"width": width})
    run_state_machine_as_test(machine, settings=settings(quick(1_000, 80), derandomize=False))


# Tests of the test: frames that are wrong in one step each.


def take_all(self: MemoryWords, claim: ItemClaim) -> Claimed:
    """Give every lease that is asked for."""
    found = claim_one(self, claim)
    return Claimed(found.pending, claim.until, taken=True) if found.pending else found


def mark_first(self: IdempotentReceiver, envelopes: Sequence[Envelope]) -> list[Disposition]:
    """Acknowledge what was claimed, and then handle it."""
    lease = TakenLease(self._clock(), self._plan.lease())
    claims, _ = self._claim(list({envelope.ticket: envelope for envelope in envelopes}), lease.seconds)
    self._acknowledge([claim.item for claim in claims.values() if not isinstance(claim, Disposition)])
    for envelope in envelopes:
        if not isinstance(claim := claims[envelope.ticket], Disposition):
            self._handle_claimed(claim, envelope, lease)
    return [Disposition.HANDLED] * len(envelopes)


def claim_all_at_first(self: IdempotentReceiver, envelopes: Sequence[Envelope]) -> list[Disposition]:
    """Claim everything at once, and begin also with a lease that is over."""
    unique = {envelope.ticket: envelope for envelope in envelopes}
    seconds = self._plan.lease()
    claims, _ = self._claim(list(unique), seconds)
    dispositions: dict[Ticket, Disposition] = {}
    for envelope in unique.values():
        dispositions |= self._handle_together([envelope], claims, TakenLease(self._clock(), seconds))
    return [dispositions[envelope.ticket] for envelope in envelopes]


def send_first(self: Repeater) -> None:
    """Send envelopes, and then write down which frame they are in."""
    if size := min(self.buffer.waiting, self._template.size):
        frame = self._frames.open(replace(self._template, size=size)).frame_id
        waiting = [payload for at, _, payload in self.buffer._database.execute(OLDEST) if at is None]
        self._transport([Envelope(frame, place, waiting[place]) for place in range(size)])
        self.buffer.assign(frame, size)


def forget_what_ended(self: SqliteRepeatBuffer, frame: int, _missing: object) -> None:
    """Drop a frame that was given up, with what is missing of it."""
    release(self, frame, ())


def believe_the_transport(self: Repeater) -> int:
    """Forget what was sent."""
    for frame in self.buffer.frames():
        self._forget(frame)
    return 0


OLDEST = "SELECT frame, place, payload FROM envelopes ORDER BY number"
claim_one = MemoryWords._claim
release = SqliteRepeatBuffer.release


@pytest.mark.soak
@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (MemoryWords, "_claim", take_all),
        (IdempotentReceiver, "receive", mark_first),
        (IdempotentReceiver, "receive", claim_all_at_first),
        (Repeater, "flush", send_first),
        (Repeater, "tick", believe_the_transport),
        (SqliteRepeatBuffer, "release", forget_what_ended),
    ],
    ids=lambda part: part.__name__ if callable(part) else None,
)
def test_a_broken_one_is_found_out(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, mutant: Any
) -> None:
    monkeypatch.setattr(where, name, mutant)

    assert_found_out(FrameMachine, 50)
