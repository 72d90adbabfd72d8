"""What actions are about; and those on buffers, routes and registrations."""

import doctest
import logging
import re
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qsl

import pytest
from starlette.datastructures import ImmutableMultiDict

from fanin import PutRoute, Register
from fanin.console.actions import words
from fanin.console.actions.action import PAGES, TIME_MS, EffectKind, Press, in_time, pages
from fanin.console.actions.log import KEPT, LOGGER, Log, LogEntry
from fanin.console.actions.subjects import BATCH, BUFFER, REGISTRATION, ROUTE, SUBJECTS
from fanin.console.actions.words import facts_of, not_done, state_of
from fanin.domain.batch import Batch, Kind, Mode, OnFailure, State
from fanin.domain.directory import Policy
from fanin.domain.reports import Errors, Progress
from fanin.errors import BufferNotFound
from fanin.wire.actions import Action, ActionOutcome, Caller, CallerKind
from tests.unit.console.pressing import Person, buttons_of, text_of


def names(batch: Batch) -> list[str]:
    return [one.name for one in BATCH.actions if not one.why_not(batch)]


def test_buttons_of_a_batch_follow_its_state(makes):
    batch, _ = makes.batch(3)
    assert names(batch) == ["close", "verify", "limits", "cancel"]
    assert names(replace(batch, state=State.CLOSED)) == ["verify", "limits", "cancel"]
    ended = replace(batch, state=State.COMPLETE, failed_more=False)
    assert names(ended) == ["verify", "remove"]
    assert names(replace(ended, failed=2)) == ["redrive", "verify", "remove"]
    assert names(replace(ended, targets=1)) == ["verify", "redeliver", "remove"]


def test_a_batch_that_holds_can_be_redriven_and_released_while_it_lives(makes):
    batch = replace(makes.batch(3)[0], on_failure=OnFailure.HOLD, held=2)
    assert names(batch) == ["close", "redrive", "release", "verify", "limits", "cancel"]
    assert names(replace(batch, state=State.TIMED_OUT)) == ["redrive", "verify", "remove"]


def test_patterns_have_fewer(makes):
    batch = makes.batch(3)[0]
    assert names(replace(batch, mode=Mode.ESTIMATED)) == ["close", "limits", "cancel"]
    assert names(replace(batch, kind=Kind.BUFFER)) == ["verify"]
    assert names(replace(batch, kind=Kind.SCATTER)) == ["verify", "cancel"]
    assert names(replace(batch, kind=Kind.FRAME, state=State.COMPLETE, failed=3)) == ["verify", "remove"]


def test_each_has_a_page_of_its_own():
    assert BATCH.segments({"batch_id": "7", "action": "close"}) == ("batches", "7")
    assert BUFFER.segments({"name": "stage"}) == ("buffers", "stage")
    assert ROUTE.segments({"name": "orders"}) == ("routes", "orders")
    assert REGISTRATION.segments({"topic": "shop", "name": "a"}) == ("directory", "shop", "a")
    assert len({one.kind for one in SUBJECTS}) == len(SUBJECTS)


class TestButtons:
    """The parts of pages that lead to questions."""

    def test_each_subject_has_a_row_of_them(self, service, person, makes):
        services = service.services
        services.buffers.define("stage", 5)
        services.routing.put(PutRoute("orders", {"source": ["a"]}, "shop"))
        services.directory.register(Register("shop", "a", service.queue(channel=True)))
        batch, _ = makes.batch(3)
        given = {
            "batch": (batch, ("batches", batch.batch_id)),
            "buffer": (services.buffers.status("stage"), ("buffers", "stage")),
            "route": (services.routing.get("orders"), ("routes", "orders")),
            "registration": (services.directory.get("shop", "a"), ("directory", "shop", "a")),
        }
        reader = Person(service, write=False)
        for subject in SUBJECTS:
            row = ("actions_parts.html", "row", subject.kind, *given[subject.kind])
            html = person.console.templates.macro(*row)
            # Then every link of it leads to a question
            links = re.findall(r'href="([^"]+)"', html)
            assert links
            assert {person.look(link).status_code for link in links} == {200}
            assert "href" not in reader.console.templates.macro(*row)

    @pytest.mark.parametrize("error", ["</a><script>alert(1)</script>\n&\"'", "x" * 1_024, "a b/c?d#e%20"])
    def test_a_group_of_failures_has_its_own(self, person, makes, error):
        # Given a batch that holds failed items
        batch = makes.failed(["x"], on_failure="hold")
        for macro, action in (("redrive_group", "redrive"), ("release_group", "release")):
            html = person.console.templates.macro("actions_parts.html", macro, batch, error)
            assert "<script>" not in html
            (link,) = re.findall(r'href="([^"]+)"', html)
            path, _, query = unescape(link).partition("?")
            assert path == f"/batches/{batch.batch_id}/actions/{action}"
            assert parse_qsl(query) == [("error", error)]

    def test_failures_without_a_reason_and_batches_that_do_not_hold_have_none(self, person, makes):
        """No error would be an address that means all failures."""
        batch = makes.failed(["x"], on_failure="hold")
        live, _ = makes.batch(3)
        for macro in ("redrive_group", "release_group"):
            assert not person.console.templates.macro("actions_parts.html", macro, batch, "").strip()
            assert not person.console.templates.macro("actions_parts.html", macro, live, "x").strip()

    def test_an_item_has_one(self, person, makes):
        batch = makes.failed(["x"] * 3)
        html = person.console.templates.macro("actions_parts.html", "redrive_item", batch, 2)
        (link,) = re.findall(r'href="([^"]+)"', html)
        assert "Send 1 message again" in person.look(unescape(link)).text


class TestLimit:
    PATH = "/buffers/stage/actions/limit"

    def test_it_says_that_it_drains_first(self, service, person):
        buffers = service.services.buffers
        buffers.define("stage", 5)
        buffers.put("stage", ["a", "b"])
        asked = person.look(self.PATH)
        assert "puts are rejected until the 2 payloads in it are done." in text_of(asked)
        assert buttons_of(asked) == ["Change the limit of stage"]
        done = person.send(self.PATH, limit="8")
        assert "The limit was 5, and is 8. 2 payloads in it are to be done first." in text_of(done)
        assert buffers.status("stage").buffer.limit == 8
        # And once more changes nothing
        again = person.send(self.PATH, limit="8")
        assert "Nothing was done: the limit is 8 already." in text_of(again)

    def test_an_empty_one_has_it_at_once(self, service, person):
        service.services.buffers.define("stage", 5)
        assert "The buffer is empty: the next put has the new limit." in text_of(person.look(self.PATH))
        person.send(self.PATH, limit="8")
        service.services.buffers.put("stage", ["x"] * 8)
        assert service.services.buffers.status("stage").pending == 8

    @pytest.mark.parametrize("limit", ["", "0", "-3", "1e3", "\u0663", "1000001", "9" * 40])
    def test_what_is_not_a_limit_is_refused(self, service, person, limit):
        service.services.buffers.define("stage", 5)
        person.look(self.PATH)
        refused = person.send(self.PATH, limit=limit)
        assert refused.status_code == 400
        assert '<p class="notice error" role="alert">' in refused.text
        assert buttons_of(refused) == ["Change the limit of stage"]
        assert service.services.buffers.status("stage").buffer.limit == 5
        assert person.console.log.entries()[0].record.outcome.code == "invalid-request"

    def test_a_buffer_that_is_gone_is_not_made_anew(self, service, person):
        # Given a question about a buffer that is deleted before the press
        service.services.buffers.define("stage", 5)
        person.look(self.PATH)
        service.services.buffers.delete("stage")
        answer = person.send(self.PATH, limit="8")
        assert answer.status_code == 404
        assert "Nothing was done: " in text_of(answer)
        with pytest.raises(BufferNotFound):
            service.services.buffers.status("stage")


class TestRoute:
    PATH = "/routes/orders/actions/delete"

    @pytest.mark.parametrize(
        ("policy", "get"),
        [
            (Policy.ALL, "Now 2 registrations of it may get each"),
            (Policy.FIRST, "Now one of 2 registrations"),
        ],
    )
    def test_it_says_who_gets_its_events(self, service, person, policy, get):
        # Given a hostile pattern
        pattern = {"source": ["</script>&"]}
        service.services.routing.put(PutRoute("orders", pattern, "shop", policy))
        for name in ("a", "b"):
            service.services.directory.register(Register("shop", name, service.queue(channel=True)))
        asked = person.look(self.PATH)
        assert get in text_of(asked)
        assert '{"source": ["</script>&"]}' in text_of(asked)
        assert "</script>&" not in asked.text
        assert buttons_of(asked) == ["Delete the route orders"]
        done = person.send(self.PATH)
        assert "The route orders is deleted." in text_of(done)
        assert list(service.services.routing.page().routes) == []
        # And once more
        again = person.send(self.PATH)
        assert again.status_code == 404
        assert "Nothing was done: " in text_of(again)


class TestRegistration:
    PATH = "/directory/shop/a/actions/deregister"

    def test_it_says_what_is_not_sent_any_more(self, service, person):
        queue = service.queue(channel=True)
        service.services.directory.register(Register("shop", "a", queue, {"zone": "<eu>"}))
        asked = person.look(self.PATH)
        assert "What is sent to the topic shop from now on no longer reaches a." in text_of(asked)
        assert "zone=<eu>" in text_of(asked)
        assert buttons_of(asked) == ["Deregister a"]
        done = person.send(self.PATH)
        assert "a is deregistered from shop." in text_of(done)
        assert list(service.services.directory.page("shop").registrations) == []
        # And once more
        again = person.send(self.PATH)
        assert again.status_code == 404
        assert "Nothing was done: " in text_of(again)


# What an action says and does, and how far one press goes.


def test_a_field_is_read_without_blanks_and_is_empty_if_it_was_not_sent(service):
    press = Press(service.services, service.clock.now, ImmutableMultiDict([("queue", "  work ")]))
    assert (press.text("queue"), press.text("limit")) == ("work", "")


def test_it_is_bounded_in_pages(service):
    press = Press(service.services, lambda: 0, ImmutableMultiDict())
    assert len(list(pages(press, lambda cursor=None: Errors((), "more")))) == PAGES


def test_it_is_bounded_in_time_but_reads_one_page_at_least():
    # Given a service that needs so long for each page
    for each, count in ((TIME_MS * 2, 1), (TIME_MS // 2, 2)):
        clock = [0]
        read = 0
        for _ in in_time(lambda clock=clock: clock[0], range(PAGES)):
            clock[0] += each
            read += 1
        assert read == count


# The action log of a console.


def entry(number: int = 0, result: EffectKind = EffectKind.DONE) -> LogEntry:
    record = Action("cancelBatch", {}, Caller(CallerKind.LOCAL, "ada"), ActionOutcome(200), 0)
    return LogEntry(record, "Cancel", "batch", str(number), ("batches", number), result, "", {})


def test_it_keeps_the_last_ones_the_newest_first():
    log = Log()
    for number in range(KEPT + 5):
        log.add(entry(number))
    assert [one.subject for one in log.entries()] == [str(number) for number in range(KEPT + 4, 4, -1)]


def test_a_failure_is_a_warning(caplog):
    with caplog.at_level(logging.INFO, LOGGER):
        Log().add(entry(result=EffectKind.FAILED))
    assert caplog.records[0].levelno == logging.WARNING


# Numbers in sentences, and how far a batch is.


def test_examples_hold():
    assert doctest.testmod(words).attempted > 0
    assert doctest.testmod(words).failed == 0


def test_what_is_not_done_has_the_bounds_of_what_is(service):
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


def test_a_state_is_said_in_words(service):
    batch = replace(service.tracker.open(), state=State.TIMED_OUT)
    assert state_of(batch) == "timed out"
