"""Asking fleets, and reading what their vehicles said, with a stack in memory."""

import json
from typing import Any

import pytest

from examples.fleet.analytics import asking
from examples.fleet.analytics.asking import AskedFleet, AskOptions, ask_fleets, read_answers
from fanin import names
from fanin.app.directory.service import DirectoryService
from fanin.app.scatters.service import ScatterService
from fanin.domain.directory import Register
from fanin.domain.marks import Failure
from tests.unit.spark.conftest import MemoryStack

OPTIONS = AskOptions("2024-W10", "cars-{fleet}", timeout=10, max_retries=0)


class Fleet:
    """Registered vehicles whose messages a test may answer."""

    def __init__(self, stack: MemoryStack, fleet: str, vehicles: list[str]) -> None:
        self.stack, self.fleet = stack, fleet
        directory = DirectoryService(stack.memory.ports())
        for name in vehicles:
            queue = f"https://sqs/{name}"
            stack.memory.channels.queues[queue] = []
            directory.register(Register(f"cars-{fleet}", name, queue))

    def deliver(self) -> None:
        """Send what waits, as the worker does."""
        worker = ScatterService(self.stack.ledger())
        while self.stack.memory.jobs.waiting:
            worker.work(**self.stack.memory.jobs.waiting.pop(0))

    def message(self, vehicle: str) -> Any:
        (message,) = self.stack.memory.channels.queues[f"https://sqs/{vehicle}"]
        return message

    def reply(self, vehicle: str, payload: object) -> None:
        self.stack.tracker().scatters.reply(self.item(vehicle), payload)

    def item(self, vehicle: str) -> str:
        return self.message(vehicle).attributes[names.ITEM_ATTRIBUTE]


@pytest.fixture
def fleet(stack: MemoryStack) -> Fleet:
    return Fleet(stack, "north", ["n1", "n2", "n3", "n4"])


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch, stack: MemoryStack) -> list[float]:
    """The driver's clock: sleeping moves it on, and rings the alarms that are due."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        stack.memory.clock.advance(int(seconds * 1000))
        for batch_id in stack.memory.timers.ring(stack.memory.clock.now()):
            stack.ledger().meet_deadline(batch_id)

    monkeypatch.setattr(asking.time, "sleep", sleep)
    monkeypatch.setattr(asking.time, "monotonic", lambda: now[0])
    return now


def test_each_vehicle_is_silent_failed_or_answered(stack, fleet):
    # Given a scatter to four vehicles, of whom one failed and two replied
    batch_id = stack.tracker().scatters.start("cars-north", "report!").batch.batch_id
    fleet.deliver()
    stack.ledger().mark([Failure(fleet.item("n2"), "its queue is gone")]).whole()
    fleet.reply("n3", {"status": "ok", "odometer_m": 5})
    fleet.reply("n4", None)

    answers = {row["vehicle"]: row for row in read_answers(stack.tracker(), "north", batch_id)}

    now = stack.memory.clock.now()
    assert answers == {
        "n1": {"fleet": "north", "vehicle": "n1", "answer": "silent"},
        "n2": {"fleet": "north", "vehicle": "n2", "answer": "failed", "detail": "its queue is gone"},
        "n3": {
            "fleet": "north",
            "vehicle": "n3",
            "answer": "answered",
            "replied_ms": now,
            "payload": '{"odometer_m": 5, "status": "ok"}',
            "detail": None,
        },
        "n4": {
            "fleet": "north",
            "vehicle": "n4",
            "answer": "answered",
            "replied_ms": now,
            "payload": None,
            "detail": None,
        },
    }


def test_a_vehicle_that_answers_meanwhile_is_there_twice_rather_than_not_at_all(stack, fleet):
    batch_id = stack.tracker().scatters.start("cars-north", "report!").batch.batch_id
    fleet.deliver()
    rows = read_answers(stack.tracker(), "north", batch_id)
    first = next(rows)
    fleet.reply(first["vehicle"], "late")

    found = [(row["vehicle"], row["answer"]) for row in [first, *rows]]

    assert found.count((first["vehicle"], "silent")) == found.count((first["vehicle"], "answered")) == 1
    assert {vehicle for vehicle, _ in found} == {"n1", "n2", "n3", "n4"}


def test_fleets_are_asked_once_however_often_the_report_runs(stack, fleet, time):
    # Given two fleets, one of them without vehicles
    body = {"report": OPTIONS.key, "from": "2024-03-04"}

    first = ask_fleets(stack.tracker(), ["north", "south"], OPTIONS, body)
    fleet.deliver()
    again = ask_fleets(stack.tracker(), ["north", "south"], OPTIONS, body)

    assert first == again
    assert [(one.fleet, one.recipients, one.received, one.ready) for one in first] == [
        ("north", 4, 0, True),
        ("south", 0, 0, True),
    ]
    assert time[0] == pytest.approx(OPTIONS.timeout, abs=2 * asking.POLL)


def test_vehicles_that_do_not_answer_are_asked_again_as_often_as_the_options_say(
    stack, fleet, time, monkeypatch
):
    # Given messages that are sent while the driver sleeps
    go_on = asking.time.sleep

    def sleep(seconds: float) -> None:
        fleet.deliver()
        go_on(seconds)

    monkeypatch.setattr(asking.time, "sleep", sleep)

    (asked,) = ask_fleets(stack.tracker(), ["north"], OPTIONS._replace(max_retries=1), {})

    assert (asked.received, asked.ready) == (0, True)
    assert {len(stack.memory.channels.queues[f"https://sqs/{name}"]) for name in ("n1", "n4")} == {2}
    assert time[0] == pytest.approx(2 * OPTIONS.timeout, abs=2 * asking.POLL)


def test_the_message_says_what_is_asked_and_of_which_fleet(stack, fleet, monkeypatch):
    # Given vehicles that answer as soon as the driver looks away
    def sleep(_: float) -> None:
        fleet.deliver()
        for name in ("n1", "n2", "n3", "n4"):
            fleet.reply(name, {})

    monkeypatch.setattr(asking.time, "sleep", sleep)

    (asked,) = ask_fleets(stack.tracker(), ["north"], OPTIONS, {"report": OPTIONS.key})

    assert asked == AskedFleet("north", asked.batch_id, recipients=4, received=4, failed=0, ready=True)
    message = fleet.message("n1")
    assert json.loads(message.body) == {"fleet": "north", "report": "2024-W10"}
    assert message.attributes[names.ATTRIBUTE_TYPE] == asking.TYPE
    assert message.attributes[names.ATTRIBUTE_CORRELATION] == "2024-W10/north"


def test_a_scatter_that_does_not_end_is_given_up_and_not_ready(stack, fleet, monkeypatch):
    # Given a stack whose alarms do not ring
    now = [0.0]
    monkeypatch.setattr(asking.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(asking.time, "monotonic", lambda: now[0])

    (asked,) = ask_fleets(stack.tracker(), ["north"], OPTIONS, {})

    assert not asked.ready
    assert now[0] == pytest.approx(OPTIONS.timeout + asking.GRACE, abs=asking.POLL)
