"""Redriving and releasing, as a person at the console sees it."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from fanin.console.actions import action, failures
from fanin.domain.batch import Batch, State
from fanin.errors import Throttled
from fanin.testing import InMemoryService
from tests.unit.console.actions.conftest import Makes
from tests.unit.console.pressing import buttons_of, form_of, text_of

HOSTILE = "</script> & \"no\" 'x'\nnext=1&error=?#%0A".ljust(1_024, "y")


def path(batch_id: int, action: str, **parameters: str) -> str:
    query = f"?{urlencode(parameters)}" if parameters else ""
    return f"/batches/{batch_id}/actions/{action}{query}"


def sent(service: InMemoryService, queue: str) -> int:
    """How many messages wait in a queue."""
    found = service.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessages"])
    return int(found["Attributes"]["ApproximateNumberOfMessages"])


class TestRedrive:
    def test_all_failures_are_counted_sent_and_said(self, service, person, makes):
        batch = makes.failed(["disk full"] * 3 + ["no price"] * 2, more=4)
        asked = person.look(path(batch.batch_id, "redrive"))
        assert buttons_of(asked) == ["Count again", "Send 5 messages again"]
        assert sent(service, makes.queue) == 0
        done = person.press(path(batch.batch_id, "redrive"))
        assert "5 messages sent again." in text_of(done)
        assert sent(service, makes.queue) == 5
        (retry,) = makes.tracker.redrives(batch.batch_id)
        assert f'href="/batches/{retry.batch_id}"' in done.text

    def test_once_more_sends_nothing(self, service, person, makes):
        batch = makes.failed(["disk full"] * 3)
        person.press(path(batch.batch_id, "redrive"))
        again = person.send(path(batch.batch_id, "redrive"))
        assert again.status_code == 200
        assert "Nothing was sent. 3 failures were redriven before." in text_of(again)
        assert "which retries them" in text_of(again)
        assert sent(service, makes.queue) == 3
        assert buttons_of(person.look(path(batch.batch_id, "redrive"))) == ["Count again"]
        assert [one.record.result["items"] for one in person.console.log.entries()] == [0, 3]

    def test_a_hostile_error_goes_through_address_and_form_and_back(self, service, person, makes):
        # Given failures whose common error is hostile
        batch = makes.failed([HOSTILE] * 2 + ["other"])
        (group, _) = makes.tracker.errors(batch.batch_id)
        asked = person.look(path(batch.batch_id, "redrive", error=group.error))
        assert "</script> &" not in asked.text.partition("<main")[2]
        # When the form is sent to the address that it names
        done = person.send(form_of(asked))
        # Then these and no others were sent
        assert "2 messages sent again." in text_of(done)
        assert sent(service, makes.queue) == 2
        assert "</script> &" not in done.text.partition("<main")[2]
        assert "</script> &" not in person.look("/log").text.partition("<main")[2]

    def test_a_whole_reason_of_a_thousand_characters_chooses_too(self, person, makes):
        batch = makes.failed([HOSTILE] * 2 + ["other"])
        asked = person.look(path(batch.batch_id, "redrive", error=HOSTILE))
        assert buttons_of(asked)[-1] == "Send 2 messages again"

    def test_ordinals_are_chosen(self, person, makes):
        batch = makes.failed(["disk full"] * 9)
        asked = person.look(path(batch.batch_id, "redrive", range="0..3, 7"))
        assert buttons_of(asked)[-1] == "Send 4 messages again"
        assert "4 messages sent again." in text_of(person.send(form_of(asked)))

    def test_another_queue_is_chosen(self, service, person, makes):
        batch = makes.failed(["disk full"])
        other = service.queue("other")
        asked = person.look(path(batch.batch_id, "redrive", queue=other))
        assert f"each to {other}." in text_of(asked)
        person.send(form_of(asked))
        assert (sent(service, makes.queue), sent(service, other)) == (0, 1)

    def test_a_queue_that_is_refused_is_said_and_nothing_is_sent(self, person, makes):
        batch = makes.failed(["disk full"])
        assert person.look(path(batch.batch_id, "redrive", queue="https://sqs/none")).status_code == 400
        person.look(path(batch.batch_id, "redrive"))
        refused = person.send(path(batch.batch_id, "redrive", queue="https://sqs/none"))
        assert refused.status_code == 400
        assert "Not done" in text_of(refused)
        assert list(makes.tracker.redrives(batch.batch_id)) == []

    def test_what_cannot_be_sent_is_counted_beforehand_and_afterwards(self, person, makes):
        # Given failures without a message, of an unknown queue, and one that can be sent
        batch = makes.failed(["a"] * 2, more=0, kept=False)
        asked = person.look(path(batch.batch_id, "redrive"))
        assert "Of 2 failures none can be sent." in text_of(asked)
        assert "Message not kept 2: items 0, 1" in text_of(asked)
        assert buttons_of(asked) == ["Count again"]
        unknown = makes.failed(["a"] * 2, source="")
        asked = person.look(path(unknown.batch_id, "redrive"))
        assert "Cannot be sent 2: the queue of the message is not known" in text_of(asked)
        person.look(path(unknown.batch_id, "verify"))  # its form has the token
        done = person.send(path(unknown.batch_id, "redrive"))
        assert "Nothing was sent. Of 2 failures none can be sent." in text_of(done)

    def test_what_failed_since_the_question_is_sent_and_counted(self, service, person, makes):
        # Given a live batch that holds one failure when the question is asked
        batch = makes.failed(["disk full"], more=5, on_failure="hold")
        assert buttons_of(person.look(path(batch.batch_id, "redrive")))[-1] == "Send 1 message again"
        # When two more fail before the press
        makes.fail(dict.fromkeys(makes.ids[batch.batch_id][1:3], "disk full"))
        done = person.send(path(batch.batch_id, "redrive"))
        assert "3 messages sent again." in text_of(done)
        assert sent(service, makes.queue) == 3

    def test_a_large_one_goes_on_by_itself(self, service, person, makes):
        batch, items = makes.batch(1_500)
        for some in (items[:1_000], items[1_000:]):
            makes.fail(dict.fromkeys(some, "disk full"))
        makes.tracker.close(batch.batch_id)
        asked = person.look(path(batch.batch_id, "redrive"))
        assert buttons_of(asked)[-1] == "Send 1,500 messages again"
        done = person.send(path(batch.batch_id, "redrive"))
        assert "1,000 messages sent so far; the service goes on with the rest by itself." in text_of(done)
        assert sent(service, makes.queue) == 1_500
        assert sum(person.calls.values()) <= 6

    def test_it_is_not_offered_when_it_is_impossible(self, person, makes):
        batch, _ = makes.batch(3, done=3)
        live = person.look(path(batch.batch_id, "redrive"))
        assert live.status_code == 409
        assert "Failures can be sent again when the batch has ended" in text_of(live)
        makes.tracker.close(batch.batch_id)
        assert "No item has failed." in text_of(person.look(path(batch.batch_id, "redrive")))


class TestRelease:
    def test_held_items_are_counted_and_given_up(self, person, makes):
        batch = makes.failed(["disk full"] * 3 + ["no price"] * 2, on_failure="hold")
        makes.tracker.close(batch.batch_id)
        asked = person.look(path(batch.batch_id, "release"))
        assert buttons_of(asked) == ["Count again", "Give up 5 held items"]
        done = person.press(path(batch.batch_id, "release"))
        assert "5 held items given up. The batch is complete." in text_of(done)
        row = makes.ledger.status(batch.batch_id).batch
        assert (row.state, row.failed) == (State.COMPLETE, 5)
        # And once more gives up nothing
        assert "Nothing was done. The batch is complete: nothing is held any more." in text_of(
            person.send(path(batch.batch_id, "release"))
        )

    def test_a_group_is_given_up(self, person, makes):
        batch = makes.failed([HOSTILE] * 3 + ["no price"] * 2, on_failure="hold")
        error = makes.tracker.errors(batch.batch_id)[0].error
        asked = person.look(path(batch.batch_id, "release", error=error))
        assert buttons_of(asked)[-1] == "Give up 3 held items"
        assert "3 held items given up. The batch is open." in text_of(person.send(form_of(asked)))
        assert "no held item matches" in text_of(person.send(form_of(asked)))
        assert makes.ledger.status(batch.batch_id).batch.held == 2

    def test_going_on_keeps_to_what_was_chosen(self, person, makes, monkeypatch):
        # Given more held items of one error than one press goes through, and others behind them
        monkeypatch.setattr(action, "PAGES", 2)
        batch, items = makes.batch(2_500, on_failure="hold")
        for first in range(0, 2_100, 700):
            makes.fail(dict.fromkeys(items[first : first + 700], "no price"))
        makes.fail(dict.fromkeys(items[2_100:], "no stock"))
        error = next(one.error for one in makes.tracker.errors(batch.batch_id) if "price" in one.error)
        # When they are given up, press by press
        answer = person.send(form_of(person.look(path(batch.batch_id, "release", error=error))))
        while buttons_of(answer):
            answer = person.send(form_of(answer))
        assert makes.ledger.status(batch.batch_id, exact=True).batch.failed == 2_100

    def test_more_than_one_press_takes_goes_on(self, person, makes, monkeypatch):
        # Given more failures than one press goes through
        monkeypatch.setattr(action, "PAGES", 2)
        batch = _held(makes, 2_500)
        asked = person.look(path(batch.batch_id, "release"))
        assert re.fullmatch(r"Give up at least [1-9]\d\d held items", buttons_of(asked)[-1])
        first = person.send(form_of(asked))
        # Then it says how far it got, and goes on from there
        assert re.search(r"[1-9]\d\d held items given up so far\.", text_of(first))
        assert buttons_of(first) == ["Go on with the rest"]
        answer = first
        while buttons_of(answer):
            answer = person.send(form_of(answer))
        assert re.search(r"\d held items given up\. The batch is open\.", text_of(answer))
        released = [entry.record.result["released"] for entry in person.console.log.entries()]
        assert (len(released) > 2, sum(released)) == (True, 2_500)

    def test_what_was_given_up_before_an_outage_is_said(self, service, person, makes, monkeypatch):
        batch = _held(makes, 1_500)
        asked = person.look(path(batch.batch_id, "release"))
        monkeypatch.setattr(service.services.ledger, "release", _once(service.services.ledger.release))
        done = person.send(form_of(asked))
        so_far = re.search(r"(\d+) held items given up so far\. Then: busy", text_of(done))
        assert so_far
        monkeypatch.undo()
        rest = f"{1_500 - int(so_far[1]):,}"
        assert f"{rest} held items given up." in text_of(person.send(form_of(done)))

    def test_it_is_not_offered_when_nothing_can_be_held(self, person, makes):
        batch = makes.failed(["disk full"])
        assert "The batch holds no items" in text_of(person.look(path(batch.batch_id, "release")))

    def test_nothing_is_held_yet(self, person, makes):
        batch, _ = makes.batch(2, on_failure="hold")
        asked = person.look(path(batch.batch_id, "release"))
        assert "No held item matches." in text_of(asked)
        assert buttons_of(asked) == ["Count again"]
        counted = makes.ledger.status(batch.batch_id).batch
        assert failures.RELEASE.why_not(counted) == failures.REDRIVE.why_not(counted) == "No item is held."


def _once(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call, which fails from the second time on."""
    calls = 0

    def once(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise Throttled("busy")
        return call(*args, **more)

    return once


def _held(makes: Makes, count: int) -> Batch:
    """An open batch that holds so many items."""
    batch, items = makes.batch(count, on_failure="hold")
    for first in range(0, count, 1_000):
        makes.fail(dict.fromkeys(items[first : first + 1_000], "disk full"))
    return batch
