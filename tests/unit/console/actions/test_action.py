"""What an action has to work with, and what it answers."""

from __future__ import annotations

from starlette.datastructures import ImmutableMultiDict

from fanin.console.actions.action import Press, Result, nothing
from fanin.testing import InMemoryService


def test_a_field_is_read_without_blanks_and_is_empty_if_it_was_not_sent(service: InMemoryService) -> None:
    press = Press(service.services, service.clock.now, ImmutableMultiDict([("queue", "  work ")]))
    assert (press.text("queue"), press.text("limit")) == ("work", "")


def test_nothing_is_an_outcome_with_numbers() -> None:
    outcome = nothing("Nothing was done.", items=3)
    assert (outcome.result, outcome.says, outcome.numbers) == (
        Result.NOTHING,
        "Nothing was done.",
        {"items": 3},
    )
