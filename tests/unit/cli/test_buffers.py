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
    assert run("buffer", "list").stdout.strip() == "jobs 3"
    run("buffer", "define", "jobs", 5)
    assert run("buffer", "status", "jobs").stdout.strip().endswith(", draining")
    assert run("buffer", "delete", "jobs", "--json").document == {"deleted": "jobs"}
    assert run("buffer", "list", "--json").document == {"buffers": [], "cursor": None}


def test_what_is_no_buffer_is_not_found(run) -> None:
    assert run("buffer", "status", "jobs").exit_code == ExitCode.NOT_FOUND
