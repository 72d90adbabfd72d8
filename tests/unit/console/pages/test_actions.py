"""The pages of actions: one asks, one does; and the log of what was done."""

import json
import logging
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from fanin.app.api import Fanin
from fanin.console.actions.action import EffectKind
from fanin.console.actions.log import KEPT, LOGGER, MAX_ASKED, MAX_SAYS, LogEntry
from fanin.console.actions.subjects import SUBJECTS
from fanin.console.pages.actions import ROUTES
from fanin.domain.batch import State
from fanin.entry.http.table import ROUTES as ALL
from fanin.testing import InMemoryService
from fanin.wire.actions import Action, ActionOutcome, Caller, CallerKind
from fanin.wire.json_types import encode_time
from tests.unit.console.pressing import ORIGIN, Person, form_of, text_of

USER_KEY = "</title><script>alert('x')</script>&\"k\""


@pytest.fixture
def batch_id(service: InMemoryService) -> int:
    """An open batch with a hostile user key, in which 3 of 10 items are done."""
    batch = service.tracker.open(user_key=USER_KEY)
    items = list(service.tracker.add(batch.batch_id, 10))
    service.tracker.ack(items[:3])
    return batch.batch_id


def state(service: InMemoryService, batch_id: int) -> State:
    return service.services.ledger.status(batch_id).batch.state


def cancel(batch_id: int) -> str:
    return f"/batches/{batch_id}/actions/cancel"


class Answered:
    """Fanin, whose ledger cancels otherwise."""

    def __init__(self, fanin: Fanin, cancel: Any) -> None:
        self.ledger = SimpleNamespace(status=fanin.ledger.status, cancel=cancel)


class TestReadOnly:
    def test_no_question_and_no_press_is_answered(self, service, batch_id):
        # Given somebody who knows a token, since the console once had buttons
        writer, reader = Person(service), Person(service, write=False)
        writer.look(cancel(batch_id))
        reader.browser.cookies = writer.browser.cookies
        reader.token = writer.token
        answers = [reader.look(cancel(batch_id)), reader.send(cancel(batch_id))]
        for answer in answers:
            assert answer.status_code == 403
            assert "This console is read-only" in text_of(answer)
            assert "fanin ui --write" in text_of(answer)
        assert not reader.calls
        assert state(service, batch_id) is State.OPEN
        assert reader.console.log.entries() == ()

    @pytest.mark.parametrize("route", [route for route in ROUTES if route.methods == {"POST"}])
    def test_each_subject_is_refused(self, service, route):
        subject_path = re.sub(r"\{[a-z_]+\}", "1", route.path.replace("{action}", _any(route.path)))
        reader = Person(service, write=False)
        assert reader.send(subject_path).status_code == 403
        assert not reader.calls


class TestForgery:
    """A form that no page of this session has is refused, and does nothing."""

    @pytest.fixture
    def person(self, service: InMemoryService, batch_id: int) -> Person:
        person = Person(service)
        person.look(cancel(batch_id))
        return person

    @pytest.mark.parametrize(
        ("query", "body"),
        [
            ("", "x=y"),
            ("?form_token={mine}", "x=y"),
            ("", "form_token={theirs}"),
            ("", "form_token={mine}&form_token=other"),
        ],
        ids=["without a token", "in the address", "of another session", "two tokens"],
    )
    def test_with_another_token_than_that_of_the_session(self, service, person, batch_id, query, body):
        other = Person(service)
        other.look(cancel(batch_id))
        tokens = {"mine": person.token, "theirs": other.token}
        assert person.token != other.token
        headers = {"Origin": ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
        address = cancel(batch_id) + query.format(**tokens)
        answer = person.browser.post(address, content=body.format(**tokens), headers=headers)
        self._refused(service, person, batch_id, answer)

    def test_pages_let_browsers_name_the_origin_of_their_forms(self, person, batch_id):
        """Under ``no-referrer`` the Origin of a form is null (Fetch, "append a request Origin header")."""
        assert person.look(cancel(batch_id)).headers["Referrer-Policy"] == "same-origin"

    def test_without_a_session(self, service, batch_id):
        # Given a console that answers only who came by its launch link
        person = Person(service, sessions=True)
        person.look(f"{cancel(batch_id)}?launch={person.console.sessions.launch()}")
        person.look(cancel(batch_id))
        stranger = Person(service, sessions=True)
        stranger.token = person.token
        # Then a stranger cannot press, and who came can
        self._refused(service, stranger, batch_id, stranger.send(cancel(batch_id)))
        assert person.send(cancel(batch_id)).status_code == 200
        assert state(service, batch_id) is State.CANCELLED

    def _refused(self, service: InMemoryService, person: Person, batch_id: int, answer: object) -> None:
        assert answer.status_code == 403
        assert state(service, batch_id) is State.OPEN
        assert person.calls["cancel"] == 0
        assert person.console.log.entries() == ()


class TestPages:
    def test_fields_may_come_several_times_and_in_the_address(self, service, batch_id):
        person = Person(service)
        person.look(cancel(batch_id))
        body = f"form_token={person.token}&range=3..5&range=7"
        headers = {"Origin": ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
        person.browser.post(f"{cancel(batch_id)}?range=1", content=body, headers=headers)
        assert person.console.log.entries()[0].asked == {"range": "1, 3..5, 7"}

    def test_hostile_texts_are_escaped(self, service, batch_id):
        person = Person(service, name="<b>stack</b>", caller="<i>ada</i>")
        for page in (
            person.look(cancel(batch_id)),
            person.send(cancel(batch_id)),
            person.look(cancel(batch_id)),
            person.look("/log"),
        ):
            for hostile in ("<script>alert", "<b>stack", "<i>ada"):
                assert hostile not in page.text
            assert len(page.text) < 100_000

    def test_the_way_back_leads_to_the_subject(self, service, batch_id):
        asked = Person(service, root="/console").look(f"/console{cancel(batch_id)}")
        assert f'href="/console/batches/{batch_id}">Back, change nothing' in asked.text
        assert form_of(asked) == f"/console{cancel(batch_id)}"

    @pytest.mark.parametrize("path", ["/batches/1/actions/explode", "/routes/a/actions/cancel"])
    def test_other_actions_do_not_exist(self, service, path):
        person = Person(service)
        assert person.look(path).status_code == 404
        assert person.send(path).status_code == 404
        assert not person.calls

    @pytest.mark.parametrize(("batch", "status"), [("x", 400), ("1", 404), ("9" * 30, 400)])
    def test_a_batch_that_does_not_exist_is_said(self, service, batch, status, batch_id):
        person = Person(service)
        person.look(cancel(batch_id))
        assert person.look(f"/batches/{batch}/actions/cancel").status_code == status
        assert person.send(f"/batches/{batch}/actions/cancel").status_code == status


def test_each_press_is_in_the_log_with_who_and_what(service, batch_id, caplog):
    person = Person(service, caller="ada")
    person.look(cancel(batch_id))
    with caplog.at_level(logging.INFO, LOGGER):
        person.send(f"{cancel(batch_id)}?error=a%0Ab", note="")
        person.send(cancel(batch_id))
        person.send("/batches/1/actions/cancel")
    missing, again, first = person.console.log.entries()
    assert (first.action, first.kind, first.subject) == ("Cancel", "batch", str(batch_id))
    assert (first.result, first.asked) == ("done", {"error": "a\nb"})
    assert (again.result, missing.result) == ("nothing", "nothing")
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == LOGGER]
    assert lines[0] == {
        "message": "action",
        "action": "cancelBatch",
        "group": "operate",
        "at": encode_time(service.clock.now()),
        "object": {"batch_id": str(batch_id)},
        "caller": {"kind": "local", "id": "ada"},
        "outcome": {"status": 200},
        "result": {"result": "done", "items": 10, "not_done": 7},
    }
    assert lines[2]["outcome"] == {"status": 404, "code": "batch-not-found"}
    assert person.token not in caplog.text


def test_a_server_that_knows_the_caller_says_so(service, batch_id):
    # Given a server that puts the identity that signed a request into its scope
    person = Person(service, caller="ada")
    caller = Caller(CallerKind.IAM, "arn:aws:sts::1:assumed-role/ops/eve", account="1")
    app = person.browser.app

    async def server(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "fanin.caller": caller}, receive, send)

    person.browser = TestClient(server, base_url=ORIGIN, follow_redirects=False)
    person.press(cancel(batch_id))
    assert person.console.log.entries()[0].record.caller == caller


def test_actions_have_the_names_of_the_api():
    operations = {route.operation: route for route in ALL}
    for subject in SUBJECTS:
        for action in subject.actions:
            route = operations[action.operation]
            assert route.action is not None, "the API logs it, too"
            assert re.findall(r"\{(\w+)\}", route.path) == list(subject.keys)


def _any(path: str) -> str:
    """An action that subjects of a path have."""
    names = {"batches": "cancel", "buffers": "limit", "routes": "delete", "directory": "deregister"}
    return names[path.split("/")[1]]


def test_a_press_that_breaks_is_in_the_log(service, batch_id, caplog):
    # Given a button that does its work, and whose answer then breaks
    person = Person(service)
    caplog.set_level(logging.INFO, LOGGER)
    person.look(cancel(batch_id))
    done = service.services.ledger.cancel

    def broken(*given: object) -> None:
        done(*given)
        raise ZeroDivisionError

    person.console.fanin = Answered(service.services, broken)
    with pytest.raises(ZeroDivisionError):
        person.send(cancel(batch_id))
    # Then the log has it, with an outcome that promises nothing
    (entry,) = person.console.log.entries()
    assert (entry.action, str(entry.result), entry.record.outcome.status) == ("Cancel", "failed", 500)
    (line,) = [json.loads(record.message) for record in caplog.records if record.name == LOGGER]
    assert (line["action"], line["outcome"]) == ("cancelBatch", {"status": 500, "code": "internal-error"})
    assert state(service, batch_id) is State.CANCELLED


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


def test_an_empty_log_says_so(service):
    assert "No button was pressed" in text_of(Person(service).look("/log"))
    assert "it has no buttons" in text_of(Person(service, write=False).look("/log"))


def test_it_shows_who_did_what_to_what(service):
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


def test_a_full_log_stays_under_100_kb(service):
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
    assert seen == [str(number) for number in reversed(range(KEPT))]


@pytest.mark.parametrize("after", ["x", "-1", "9" * 50, "150"])
def test_a_place_that_does_not_exist_is_not_an_error(service, after):
    assert Person(service).look(f"/log?after={after}").status_code == 200


def test_it_says_where_else_to_look_for_who_did_something(service):
    # Given a console of one person, and one whose callers the API has checked
    of_one = Person(service, sessions=True)
    session = of_one.console.sessions.launch()
    of_one.browser.get(f"/?launch={session}")
    # Then only the first says that others are not in its log
    assert "the API logs who" in text_of(of_one.look("/log"))
    assert "the API logs who" not in text_of(Person(service).look("/log"))
