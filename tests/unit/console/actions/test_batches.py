"""Actions on a whole batch: what they ask, do and say; each as a person sees it."""

import pytest
from starlette.datastructures import ImmutableMultiDict

from fanin import OpenFrame
from fanin.console.actions import batches
from fanin.console.actions.action import Press
from fanin.domain.batch import State
from fanin.domain.targets import TargetState
from fanin.testing import Fault
from tests.unit.console.actions.conftest import Makes
from tests.unit.console.pressing import Person, buttons_of, text_of


def path(batch_id: int, action: str) -> str:
    return f"/batches/{batch_id}/actions/{action}"


def state(makes: Makes, batch_id: int) -> State:
    return makes.ledger.status(batch_id).batch.state


class TestClose:
    def test_it_says_how_many_items_it_waits_for(self, person, makes):
        batch, _ = makes.batch(500, done=312)
        asked = person.look(path(batch.batch_id, "close"))
        assert "It completes when the 188 items that are not done are done." in text_of(asked)
        assert buttons_of(asked) == ["Close the batch at 500 items"]
        assert state(makes, batch.batch_id) is State.OPEN
        done = person.press(path(batch.batch_id, "close"))
        assert "It has 500, and 188 items are not done yet." in text_of(done)
        assert state(makes, batch.batch_id) is State.CLOSED

    @pytest.mark.parametrize(("items", "then"), [(0, "It has no items"), (3, "All 3 items are done")])
    def test_what_is_done_completes_at_once(self, person, makes, items, then):
        batch, _ = makes.batch(items, done=items)
        assert f"{then}, so it completes at once." in text_of(person.look(path(batch.batch_id, "close")))
        assert "closed and complete" in text_of(person.press(path(batch.batch_id, "close")))
        assert state(makes, batch.batch_id) is State.COMPLETE

    def test_once_more_changes_nothing(self, person, makes):
        batch, _ = makes.batch(5)
        person.press(path(batch.batch_id, "close"))
        again = person.send(path(batch.batch_id, "close"))
        assert again.status_code == 200
        assert "Nothing was done. The batch is closed: it takes no more items anyway." in text_of(again)
        assert person.look(path(batch.batch_id, "close")).status_code == 409

    def test_it_says_so_if_the_batch_ended_meanwhile(self, person, makes):
        # Given a batch that is cancelled between the read and the call
        batch, _ = makes.batch(5)
        makes.tracker.cancel(batch.batch_id)
        outcome = batches.Close().do(_press(person), batch)
        assert outcome.says == "Nothing was done: the batch is cancelled by now."

    def test_a_frame_is_not_closed_by_hand(self, person, makes):
        frame = makes.tracker.frames.open(OpenFrame(3))
        assert "A frame is not closed by hand." in text_of(person.look(path(frame.frame_id, "close")))


class TestCancel:
    def test_it_says_how_many_items_are_given_up(self, person, makes):
        batch, _ = makes.batch(500, done=312)
        asked = person.look(path(batch.batch_id, "cancel"))
        assert buttons_of(asked) == ["Cancel 188 items that are not done"]
        assert "This cannot be undone." in text_of(asked)
        done = person.press(path(batch.batch_id, "cancel"))
        assert "The batch is cancelled: 188 items of 500 were not done." in text_of(done)
        assert state(makes, batch.batch_id) is State.CANCELLED

    def test_what_was_done_since_the_question_counts(self, person, makes):
        # Given a question that somebody has read
        batch, items = makes.batch(500, done=312)
        person.look(path(batch.batch_id, "cancel"))
        # When 50 more are done before the press
        makes.tracker.ack(items[312:362])
        done = person.send(path(batch.batch_id, "cancel"))
        assert "138 items of 500 were not done" in text_of(done)

    def test_a_batch_that_completed_meanwhile_stays_complete(self, person, makes):
        batch, items = makes.batch(2)
        makes.tracker.close(batch.batch_id)
        person.look(path(batch.batch_id, "cancel"))
        makes.tracker.ack(items)
        assert "it is complete" in text_of(person.send(path(batch.batch_id, "cancel")))
        outcome = batches.CANCEL.do(_press(person), batch)
        assert outcome.says == "Nothing was cancelled: the batch is complete by now."
        assert state(makes, batch.batch_id) is State.COMPLETE

    def test_the_batch_of_a_buffer_is_not_offered(self, person, makes):
        buffer = makes.tracker.buffers.define("stage", 5)
        assert "not cancelled by hand" in text_of(person.look(path(buffer.batch_id, "cancel")))

    def test_an_answer_that_was_lost_is_told_as_such_and_the_next_press_is_safe(self, service, person, makes):
        batch, _ = makes.batch(5)
        person.look(path(batch.batch_id, "cancel"))
        service.on_call = Fault("batches.end", "after")
        lost = person.send(path(batch.batch_id, "cancel"))
        assert lost.status_code == 503
        assert "It is safe to press again: nothing is done twice." in text_of(lost)
        assert person.console.log.entries()[0].record.outcome.code == "service-unavailable"
        again = person.send(path(batch.batch_id, "cancel"))
        assert "Nothing was done. The batch has ended: it is cancelled." in text_of(again)


class TestRemove:
    def test_it_says_what_goes(self, person, makes):
        batch = makes.failed(["disk full"], more=4)
        asked = person.look(path(batch.batch_id, "remove"))
        assert buttons_of(asked) == ["Remove the batch and its 5 items"]
        assert "Its 1 failure and their messages go with it." in text_of(asked)
        assert "The batch and its 5 items are removed." in text_of(
            person.press(path(batch.batch_id, "remove"))
        )

    def test_once_more_finds_nothing(self, person, makes):
        # Given a batch that was removed
        batch = makes.failed(["disk full"])
        person.press(path(batch.batch_id, "remove"))
        again = person.send(path(batch.batch_id, "remove"))
        assert again.status_code == 410
        assert "Nothing was done: batch" in text_of(again)
        assert "Back to the batch" not in text_of(again)
        outcome = batches.Remove().do(_press(person), batch)
        assert outcome.says == "Nothing was done: the batch was removed before."

    def test_a_live_batch_is_not_removed(self, person, makes):
        batch, _ = makes.batch(3)
        answer = person.look(path(batch.batch_id, "remove"))
        assert (answer.status_code, buttons_of(answer)) == (409, [])


class TestTargets:
    def test_those_that_are_parked_are_told_again(self, service, person, makes):
        # Given one target that was told, and one that refused
        callbacks = service._runtime.memory.callbacks
        callbacks.refusing.add("parked")
        on_end = [{"type": "step_functions", "task_token": name} for name in ("told", "parked")]
        batch, items = makes.batch(1, on_end=on_end)
        assert person.look(path(batch.batch_id, "redeliver")).status_code == 409
        makes.tracker.close(batch.batch_id)
        makes.tracker.ack(items)
        callbacks.refusing.clear()
        asked = person.look(path(batch.batch_id, "redeliver"))
        assert buttons_of(asked) == ["Tell 1 target again"]
        assert "1 target was not told yet, 0 of them never tried" in text_of(asked)
        done = person.press(path(batch.batch_id, "redeliver"))
        assert "1 target is told again, of 2." in text_of(done)
        reports = makes.ledger.targets(batch.batch_id).targets
        assert {one.state for one in reports} == {TargetState.DELIVERED}
        # And once more tells nobody
        assert "Nothing was sent" in text_of(person.send(path(batch.batch_id, "redeliver")))
        assert buttons_of(person.look(path(batch.batch_id, "redeliver"))) == []
        assert len(service.callbacks) == 2

    def test_one_that_fails_and_is_tried_again_later_is_told_at_once(self, service, person, makes):
        queue = service.queue("told", channel=True)
        batch, items = makes.batch(1, on_end=[{"type": "sqs", "queue_url": queue}])
        service.sqs.delete_queue(QueueUrl=queue)
        makes.tracker.close(batch.batch_id)
        makes.tracker.ack(items)
        assert makes.ledger.targets(batch.batch_id).targets[0].state is TargetState.FAILED
        assert service.queue("told", channel=True) == queue
        done = person.press(path(batch.batch_id, "redeliver"))
        assert "1 target is told again, of 1." in text_of(done)
        assert makes.ledger.targets(batch.batch_id).targets[0].state is TargetState.DELIVERED

    def test_it_is_not_offered_without_targets(self, person, makes):
        batch, _ = makes.batch(1)
        assert "opened without targets" in text_of(person.look(path(batch.batch_id, "redeliver")))


@pytest.mark.parametrize("action", ["close", "cancel", "verify"])
def test_a_press_makes_few_calls(person, makes, action):
    batch, _ = makes.batch(10_000, done=100)
    person.look(path(batch.batch_id, action))
    person.calls.clear()
    person.send(path(batch.batch_id, action))
    assert sum(person.calls.values()) <= 3


def _press(person: Person) -> Press:
    return Press(person.console.fanin, person.console.now, ImmutableMultiDict())
