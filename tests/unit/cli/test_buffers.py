"""fanin buffer define, put, take, done, status, list, delete."""

from __future__ import annotations

from fanin.cli.exits import ExitCode


def test_work_goes_through_a_buffer(run) -> None:
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


def test_what_is_no_buffer_is_not_found(run) -> None:
    assert run("buffer", "status", "jobs").exit_code == ExitCode.NOT_FOUND


def test_a_put_that_stops_says_how_far_it_came_and_can_go_on(run) -> None:
    # Given a buffer with room for two of four lines
    run("buffer", "define", "jobs", 2)
    put = ("buffer", "put", "jobs", "-", "--no-wait", "--key", "import 7")
    # When
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


def test_without_keys_it_says_with_which_payload_to_go_on(run) -> None:
    run("buffer", "define", "jobs", 1)
    stopped = run("buffer", "put", "jobs", "a", "b", "--no-wait", "--json")
    assert (stopped.exit_code, len(stopped.document["items"])) == (ExitCode.REFUSED, 1)
    assert "buffer jobs: 1 payloads are in; go on with payload 2" in stopped.stderr


def test_ctrl_c_says_how_far_it_came(run, tracker, monkeypatch) -> None:
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
