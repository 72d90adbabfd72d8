"""Numbers in sentences, and how far a batch is."""

from __future__ import annotations

import doctest
from dataclasses import replace

from fanin.console.actions import words
from fanin.console.actions.words import facts_of, not_done, state_of
from fanin.domain.batch import State
from fanin.domain.reports import Progress


def test_examples_hold() -> None:
    assert doctest.testmod(words).attempted > 0
    assert doctest.testmod(words).failed == 0


def test_what_is_not_done_has_the_bounds_of_what_is(service) -> None:
    batch = service.tracker.open()
    service.tracker.add(batch.batch_id, 1_000)
    row = replace(service.services.ledger.status(batch.batch_id).batch, failed=2, held=3)
    progress = Progress(row, 100, 163)
    assert not_done(progress) == (837, 900)
    assert facts_of(progress) == (
        ("State", "open"),
        ("Items", "1,000"),
        ("Not done", "837 to 900 items"),
        ("Failed", "2"),
        ("Held", "3"),
    )


def test_a_state_is_said_in_words(service) -> None:
    batch = replace(service.tracker.open(), state=State.TIMED_OUT)
    assert state_of(batch) == "timed out"
