"""fanin scatter start, show; fanin replies."""

from __future__ import annotations

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.adapters.system import SystemClock
from fanin.app.scatters.service import ScatterService
from fanin.app.services import Services
from fanin.cli.exits import ExitCode
from fanin.client.tracker import Tracker

QUEUE = "https://sqs/car"


@pytest.fixture
def memory() -> Memory:
    memory = Memory(clock=SystemClock())
    memory.channels.queues[QUEUE] = []
    return memory


@pytest.fixture
def tracker(memory: Memory) -> Tracker:
    return Tracker(Services(memory.ports()))


def test_a_scatter_from_start_to_its_replies(run, memory, tracker) -> None:
    # Given a message to two queues
    started = run("scatter", "start", "report!", "--to", QUEUE, "--to", QUEUE, "--timeout", "30s")
    batch = started.stdout.strip()
    for job in memory.jobs.waiting:
        ScatterService(tracker.ledger).send(**{"batch_id": 0, **job})
    assert run("replies", batch).stderr == "nobody has replied\n"

    # When one replies
    first, _ = memory.channels.queues[QUEUE]
    tracker.scatters.reply(first.attributes[names.ITEM_ATTRIBUTE], {"km": 12})

    # Then it is shown, and the other is missing
    shown = run("scatter", "show", batch, "--json").document
    assert (shown["recipients"], shown["received"], shown["missing"], shown["ready"]) == (2, 1, 1, False)
    assert "sent_again" in run("scatter", "show", batch).stdout
    (reply,) = run("replies", batch, "--all", "--json").document["replies"]
    assert (reply["name"], reply["payload"]) == ("car", {"km": 12})
    assert '{"km": 12}' in run("replies", batch).stdout


def test_a_topic_with_a_quorum(run) -> None:
    document = run(
        "scatter", "start", "x", "--topic", "fleet", "--where", "kind=van", "--quorum", "0.5", "--json"
    ).document
    assert (document["recipients"], document["quorum"], document["ready"]) == (0, 0, True)


@pytest.mark.parametrize("wrong", [(), ("--topic", "a", "--to", QUEUE), ("--topic", "a", "--quorum", "most")])
def test_a_wrong_command_line_is_told(run, wrong) -> None:
    assert run("scatter", "start", "x", *wrong).exit_code == ExitCode.USAGE


def test_a_living_correlation_id_is_refused(run) -> None:
    start = ("scatter", "start", "x", "--to", QUEUE, "--correlation-id", "mine")
    assert run(*start).exit_code == ExitCode.OK
    assert run(*start).exit_code == ExitCode.REFUSED
