"""Redrive and cancel what a list shows: what is asked, what is done, and what becomes of the others."""

import re
from html import unescape

import pytest

from fanin import Failure
from fanin.domain.batch import State
from fanin.domain.failures import KeptMessage
from fanin.errors import AccessDenied
from tests.unit.console.looking import HOSTILE
from tests.unit.console.pressing import Person, buttons_of, form_of, text_of


@pytest.fixture
def failed(service):
    """Three complete batches with 1, 2 and 3 failures, the last with a hostile name, and one without."""
    queue, found = service.queue("work"), []
    for n in range(4):
        with service.tracker.batch(user_key=HOSTILE if n == 3 else f"b{n}") as batch:
            items = list(batch.add(5))
        marks = [Failure(item, "no", KeptMessage("{}"), source=queue) for item in items[:n]]
        service.tracker.fail(marks) if marks else None
        service.tracker.ack(items[n:])
        found.append(batch.id)
    return found[1:]


def live(service, count: int) -> list[int]:
    found = [service.tracker.open(user_key=f"live-{n}").batch_id for n in range(count)]
    for batch_id in found:
        service.tracker.add(batch_id, 10)
    return found


def states(service, batch_ids) -> list[State]:
    return [service.services.ledger.status(one).batch.state for one in batch_ids]


class Refusing:
    """A service that refuses, or breaks, for one batch."""

    def __init__(self, fanin, batch_id: int, error: Exception) -> None:
        self._fanin = fanin
        self.batch_id, self.error = batch_id, error

    def __getattr__(self, name: str):
        return (
            self
            if name == "ledger"
            else getattr(self._fanin.ledger, name, None) or getattr(self._fanin, name)
        )

    def cancel(self, batch_id: int):
        if batch_id == self.batch_id:
            raise self.error
        return self._fanin.ledger.cancel(batch_id)


def test_the_question_has_the_numbers_of_all_and_each_is_redriven_and_logged(service, failed):
    person = Person(service)
    listed = person.look("/batches?state=complete")
    link = unescape(re.findall(r'href="(/batches/actions/redrive[^"]*)"', listed.text)[0])
    asked = person.look(link)
    assert "Of the 4 batches that the list shows, 3 are affected: 6 messages" in text_of(asked)
    assert buttons_of(asked) == ["Redrive 3 batches: 6 messages to send again"]
    assert "<script>alert" not in asked.text
    assert not list(service.tracker.redrives(failed[0]))
    # And presses
    answer = person.send(form_of(asked))
    # Then each was redriven, and is in the log
    assert "3 batches of 3 done." in text_of(answer)
    assert [len(list(service.tracker.redrives(one))) for one in failed] == [1, 1, 1]
    logged = [(entry.action, entry.subject) for entry in person.console.log.entries()]
    assert sorted(logged) == sorted(("Redrive", str(one)) for one in failed)
    # And twice does nothing twice
    assert buttons_of(person.look(link)) == []


def test_what_was_asked_is_what_is_done_whatever_the_list_shows_by_then(service):
    person, before = Person(service), live(service, 2)
    asked = person.look("/batches/actions/cancel?state=open")
    assert buttons_of(asked) == ["Cancel 2 batches: 20 items that are not done"]
    after = live(service, 1)
    person.send(form_of(asked))
    assert states(service, before + after) == [State.CANCELLED, State.CANCELLED, State.OPEN]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (AccessDenied("you may not"), " (live-1): You may not."),
        (RuntimeError("a bug"), ": The console has failed."),
    ],
)
def test_one_that_fails_is_named_and_does_not_stop_the_others(service, error, said):
    found = live(service, 3)
    person = Person(service, Refusing(service.services, found[1], error))
    answer = person.press("/batches/actions/cancel?state=open")
    assert "2 batches of 3 done, 1 failed." in text_of(answer)
    assert f"{found[1]}{said}" in text_of(answer)
    assert states(service, found) == [State.CANCELLED, State.OPEN, State.CANCELLED]
    assert len(person.console.log.entries()) == 3


def test_only_what_the_page_has_read_is_meant_and_the_question_says_so(service):
    live(service, 30)
    asked = Person(service).look("/batches/actions/cancel?state=open")
    assert "25 batches" in text_of(asked)
    assert "further pages" in text_of(asked)


def test_what_takes_too_long_is_left_for_another_press(service, monkeypatch):
    found = live(service, 3)
    person = Person(service)
    asked = person.look("/batches/actions/cancel?state=open")
    monkeypatch.setattr("fanin.console.actions.action.TIME_MS", 0)
    first = person.send(form_of(asked))
    assert buttons_of(first) == ["Go on with the 2 left"]
    monkeypatch.undo()
    person.send(form_of(first))
    assert states(service, found) == [State.CANCELLED] * 3


def test_who_may_not_press_is_asked_nothing(service):
    live(service, 1)
    reader = Person(service, write=False)
    assert reader.look("/batches/actions/cancel?state=open").status_code == 403
    assert "what is listed" not in reader.look("/batches?state=open").text
    assert reader.send("/batches/actions/cancel?id=1").status_code == 403
    assert Person(service).look("/batches/actions/remove").status_code == 404


def test_too_many_batches_are_refused(service):
    person = Person(service)
    person.look("/batches/actions/cancel?state=open")
    found = live(service, 1)
    person.look("/batches/actions/cancel?state=open")
    many = "&".join(f"id={n}" for n in range(1, 200))
    assert person.send(f"/batches/actions/cancel?{many}").status_code == 413
    assert states(service, found) == [State.OPEN]
