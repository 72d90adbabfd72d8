"""The page of the action log."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from fanin.console.actions.action import EffectKind
from fanin.console.actions.log import KEPT, MAX_ASKED, MAX_SAYS, LogEntry
from fanin.wire.actions import Action, ActionOutcome, Caller, CallerKind
from tests.unit.console.pressing import Person, text_of


def entry(number: int, says: str = "done") -> LogEntry:
    record = Action(
        "redriveBatch",
        {"batch_id": str(number)},
        Caller(CallerKind.LOCAL, "<i>ada"),
        ActionOutcome(200),
        number,
    )
    asked = {"error": "<b>disk</b> full"}
    return LogEntry(
        record, "Redrive", "batch", str(number), ("batches", number), EffectKind.DONE, says, asked
    )


def test_an_empty_log_says_so(service) -> None:
    assert "No button was pressed" in text_of(Person(service).look("/log"))
    assert "it has no buttons" in text_of(Person(service, write=False).look("/log"))


def test_it_shows_who_did_what_to_what(service) -> None:
    person = Person(service)
    person.console.log.add(entry(service.clock.now(), "5 messages sent again."))
    answer = person.look("/log")
    assert (
        f"Redrive batch {service.clock.now()} error: <b>disk</b> full done 5 messages sent again. <i>ada"
        in text_of(answer)
    )
    assert "<b>" not in answer.text
    assert "<i>" not in answer.text
    assert not person.calls


def test_a_full_log_stays_under_100_kb(service) -> None:
    person = Person(service)
    for number in range(KEPT):
        person.console.log.add(replace(entry(number, "'" * MAX_SAYS), asked={"error": "&" * MAX_ASKED}))
    # When its pages are read to the end
    address: str | None = "/log"
    seen: list[str] = []
    while address:
        answer = person.look(address)
        assert len(answer.content) < 100_000
        seen += re.findall(r'href="/batches/(\d+)"', answer.text)
        following = re.search(r'href="(/log\?after=\d+)"', answer.text)
        address = following[1] if following else None
    # Then each entry was there once
    assert seen == [str(number) for number in reversed(range(KEPT))]


@pytest.mark.parametrize("after", ["x", "-1", "9" * 50, "150"])
def test_a_place_that_does_not_exist_is_not_an_error(service, after) -> None:
    assert Person(service).look(f"/log?after={after}").status_code == 200


def test_it_says_where_else_to_look_for_who_did_something(service) -> None:
    # Given a console of one person, and one whose callers the API has checked
    of_one = Person(service, sessions=True)
    session = of_one.console.sessions.launch()
    of_one.browser.get(f"/?launch={session}")
    # Then only the first says that others are not in its log
    assert "the API logs who" in text_of(of_one.look("/log"))
    assert "the API logs who" not in text_of(Person(service).look("/log"))
