"""What an action has to work with, and what it answers."""

from __future__ import annotations

from starlette.datastructures import ImmutableMultiDict

from fanin.console.actions.action import Press


def test_a_field_is_read_without_blanks_and_is_empty_if_it_was_not_sent(service) -> None:
    press = Press(service.services, service.clock.now, ImmutableMultiDict([("queue", "  work ")]))
    assert (press.text("queue"), press.text("limit")) == ("work", "")
