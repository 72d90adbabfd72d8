"""Changing limits of a live batch: what the form asks, takes and refuses; each as a person sees it."""

import pytest

from fanin import OpenFrame
from fanin.domain.batch import State
from fanin.domain.failures import Tolerance
from tests.unit.console.pressing import buttons_of, text_of


def path(batch_id: int) -> str:
    return f"/batches/{batch_id}/actions/limits"


def test_what_is_typed_changes_and_what_is_empty_stays(service, person, makes):
    batch, _ = makes.batch(5, stall_after=600)
    asked = person.look(path(batch.batch_id))
    assert "What you leave empty stays as it is." in text_of(asked)
    assert "Stall time 600 s" in text_of(asked)
    assert buttons_of(asked) == ["Change the limits"]
    typed = {"deadline": "2h", "tolerated_failures": "5%", "min_sample": "20", "milestones": "50, 90%"}
    done = person.press(path(batch.batch_id), **typed, stall_after="")
    after = makes.ledger.status(batch.batch_id).batch
    assert after.deadline == service.clock.now() + 7_200_000
    assert after.tolerated_failures == Tolerance(percent=5.0, min_sample=20)
    assert (after.milestones, after.stall_after) == ((50, 90), 600)
    assert "tolerated failures, which was any" in text_of(done)
    assert "5% of what is done, from 20 items on" in text_of(done)
    # And its page says so
    page = text_of(person.look(f"/batches/{batch.batch_id}"))
    assert "Stall time 10 min without activity Milestones 50 %, 90 %" in page
    # And the log has the name of the API's call, and what was typed
    entry = person.console.log.entries()[0]
    assert (entry.record.action, entry.asked) == ("changeLimits", typed)
    # When milestones and the stall are taken away
    person.press(path(batch.batch_id), milestones="none", stall_after="0")
    after = makes.ledger.status(batch.batch_id).batch
    assert (after.milestones, after.stall_after) == ((), 0)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({}, "Nothing changes; give a deadline"),
        ({"deadline": "tomorrow"}, "or a duration from now like 15m."),
        ({"deadline": "2020-01-01T00:00:00Z"}, "it is over: now is 2026-11-23T09:00:00.000Z."),
        ({"deadline": "999999999d"}, "it is later: now is"),
        ({"deadline": "2h", "tolerated_failures": "ten"}, "'ten' is not a tolerance"),
        ({"deadline": "2h", "min_sample": "20"}, "A number of items goes with a tolerated share"),
        ({"deadline": "2h", "milestones": "50,101"}, "'101' is not a whole number from 1 to 100"),
        ({"deadline": "2h", "stall_after": "soon"}, "'soon' is not a duration"),
    ],
)
def test_what_is_refused_is_told_beside_the_form_and_writes_nothing(person, makes, typed, says):
    batch, _ = makes.batch(5)
    before = makes.ledger.status(batch.batch_id).batch
    refused = person.press(path(batch.batch_id), **typed)
    assert (refused.status_code, buttons_of(refused)) == (400, ["Change the limits"])
    assert says in text_of(refused)
    assert all(f'value="{text}"' in refused.text for text in typed.values())
    assert makes.ledger.status(batch.batch_id).batch == before


def test_a_tolerance_that_is_exceeded_already_cancels(person, makes):
    batch, ids = makes.batch(5)
    makes.fail(dict.fromkeys(ids[:2], "disk full"))
    done = person.press(path(batch.batch_id), tolerated_failures="1")
    assert "The batch is cancelled now." in text_of(done)
    assert makes.ledger.status(batch.batch_id).batch.state is State.CANCELLED
    assert "only limits of a live batch can change" in text_of(person.look(path(batch.batch_id)))


def test_only_plain_batches_have_limits_that_change(person, makes):
    frame = makes.tracker.frames.open(OpenFrame(3))
    asked = person.look(path(frame.frame_id))
    assert asked.status_code == 409
    assert "A frame has limits of its own." in text_of(asked)
