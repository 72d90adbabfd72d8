"""fanin frame open, status, claim."""

from __future__ import annotations

from fanin.cli.exits import ExitCode


def test_a_frame_from_open_to_complete(run) -> None:
    # Given a frame of three envelopes
    frame = run("frame", "open", 3, "--source", "orders", "--ttl", "15m").stdout.strip()

    # When two are claimed and acknowledged
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


def test_what_is_no_frame_is_not_found(run) -> None:
    batch = run("open").stdout.strip()
    assert run("frame", "status", batch).exit_code == ExitCode.NOT_FOUND


def test_a_frame_is_opened_once_for_a_key(run) -> None:
    first, again = (run("frame", "open", 3, "--key", "orders 7").stdout for _ in range(2))
    assert first == again
    assert run("frame", "open", 3, "--key", "orders 8").stdout != first
