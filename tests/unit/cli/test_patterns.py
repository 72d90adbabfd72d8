"""Commands on scatters, frames and buffers."""

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


def test_a_scatter_from_start_to_its_replies(run, memory, tracker):
    # Given a message to two queues
    started = run("scatter", "start", "report!", "--to", QUEUE, "--to", QUEUE, "--timeout", "30s")
    batch = started.stdout.strip()
    for job in memory.jobs.waiting:
        ScatterService(tracker.ledger).send(**{"batch_id": 0, **job})
    assert run("replies", batch).stderr == "nobody has replied\n"

    first, _ = memory.channels.queues[QUEUE]
    tracker.scatters.reply(first.attributes[names.ITEM_ATTRIBUTE], {"km": 12})
    # Then it is shown, and the other is missing
    shown = run("scatter", "show", batch, "--json").document
    assert (shown["recipients"], shown["received"], shown["missing"], shown["ready"]) == (2, 1, 1, False)
    assert "sent_again" in run("scatter", "show", batch).stdout
    (reply,) = run("replies", batch, "--all", "--json").document["replies"]
    assert (reply["name"], reply["payload"]) == ("car", {"km": 12})
    assert '{"km": 12}' in run("replies", batch).stdout


def test_a_topic_with_a_quorum(run):
    document = run(
        "scatter", "start", "x", "--topic", "fleet", "--where", "kind=van", "--quorum", "0.5", "--json"
    ).document
    assert (document["recipients"], document["quorum"], document["ready"]) == (0, 0, True)


@pytest.mark.parametrize("wrong", [(), ("--topic", "a", "--to", QUEUE), ("--topic", "a", "--quorum", "most")])
def test_a_wrong_command_line_is_told(run, wrong):
    assert run("scatter", "start", "x", *wrong).exit_code == ExitCode.USAGE


def test_a_frame_from_open_to_complete(run):
    # Given a frame of three envelopes
    frame = run("frame", "open", 3, "--source", "orders", "--ttl", "15m").stdout.strip()

    claimed = run("frame", "claim", frame, 0, 2).stdout.splitlines()
    items = [line.split()[1] for line in claimed]
    assert [line.split()[0] for line in claimed] == ["claimed", "claimed"]
    assert run("frame", "claim", frame, 0).stdout.startswith("leased ")
    run("ack", *items)
    # Then the third is missing, until it is done
    assert run("frame", "status", frame).stdout.splitlines() == ["closed, 3 envelopes", "missing 1..2"]
    run("ack", run("frame", "claim", frame, 1, "--json").document["claims"][0]["item"])
    told = run("frame", "status", frame, "--json").document
    assert (told["state"], told["missing"], told["ttl"]) == ("complete", [], 900)


def test_a_frame_is_opened_once_for_a_key(run):
    first, again = (run("frame", "open", 3, "--key", "orders 7").stdout for _ in range(2))
    assert first == again
    assert run("frame", "open", 3, "--key", "orders 8").stdout != first


def test_work_goes_through_a_buffer(run):
    # Given a buffer of three, which takes lines of stdin
    assert run("buffer", "define", "jobs", 3).stdout.startswith("memory:jobs-")
    items = run("buffer", "put", "jobs", "-", "c", stdin="a\t1\nb\n").stdout.splitlines()
    assert len(set(items)) == 3
    full = run("buffer", "put", "jobs", "d", "--no-wait")
    assert (full.exit_code, "3 items pending of at most 3" in full.stderr) == (ExitCode.REFUSED, True)
    # When two are taken, and one of them is done
    lines = run("buffer", "take", "jobs", "--most", 2, "--wait", 0).stdout.splitlines()
    receipt, payload = lines[0].split(" ")
    assert payload == "a\t1"
    assert run("buffer", "done", "jobs", receipt).stdout.strip() == "1 done, 0 late"
    assert run("buffer", "done", "jobs", receipt).stdout.strip() == "0 done, 1 late"
    # Then status says so, for people and for machines
    status = run("buffer", "status", "jobs").stdout.strip()
    assert status == "2 of 3 slots in use: 1 waiting, 1 taken"
    told = run("buffer", "status", "jobs", "--json").document
    assert (told["pending"], told["count"], told["taken"], told["limit"]) == (2, 1, 1, 3)
    header, row = run("buffer", "list").stdout.splitlines()
    assert (header, row.split("\t")[:2]) == ("buffer\tlimit\tqueue", ["jobs", "3"])
    run("buffer", "define", "jobs", 5)
    assert run("buffer", "status", "jobs").stdout.strip().endswith(", draining")
    assert run("buffer", "delete", "jobs", "--yes", "--json").document == {"deleted": "jobs"}
    assert run("buffer", "list", "--json").document == {"buffers": [], "cursor": None}


def test_a_put_that_stops_says_how_far_it_came_and_can_go_on(run):
    # Given a buffer with room for two of four lines
    run("buffer", "define", "jobs", 2)
    put = ("buffer", "put", "jobs", "-", "--no-wait", "--key", "import 7")
    stopped = run(*put, stdin="a\nb\nc\nd\n")
    # Then what is in was printed, and the error names the buffer
    items = stopped.stdout.split()
    assert (stopped.exit_code, len(items)) == (ExitCode.REFUSED, 2)
    assert "buffer jobs: 2 payloads are in; run the same command again to go on" in stopped.stderr
    assert "buffer jobs has 2 items pending of at most 2" in stopped.stderr
    # When there is room, and the same command runs again, Then nothing is put in twice
    taken = run("buffer", "take", "jobs", "--most", 2, "--wait", 0, "--json").document["work"]
    run("buffer", "done", "jobs", *(work["receipt"] for work in taken))
    assert run(*put, stdin="a\nb\nc\nd\n").stdout.split()[:2] == items
    taken += run("buffer", "take", "jobs", "--most", 2, "--wait", 0, "--json").document["work"]
    assert [work["payload"] for work in taken] == ["a", "b", "c", "d"]


def test_without_keys_it_says_with_which_payload_to_go_on(run):
    run("buffer", "define", "jobs", 1)
    stopped = run("buffer", "put", "jobs", "a", "b", "--no-wait", "--json")
    assert (stopped.exit_code, len(stopped.document["items"])) == (ExitCode.REFUSED, 1)
    assert "buffer jobs: 1 payloads are in; go on with payload 2" in stopped.stderr


def test_ctrl_c_says_how_far_it_came(run, tracker, monkeypatch):
    run("buffer", "define", "jobs", 9)
    put = tracker.buffers.put

    def interrupted(name, payloads, *, key=None):
        if payloads == ("b",):
            raise KeyboardInterrupt
        return put(name, payloads, key=key)

    monkeypatch.setattr(tracker.buffers, "put", interrupted)
    stopped = run("buffer", "put", "jobs", "a", "b")
    assert stopped.exit_code == ExitCode.INTERRUPTED
    assert "buffer jobs: 1 payloads are in" in stopped.stderr
