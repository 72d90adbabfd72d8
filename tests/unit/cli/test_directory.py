"""fanin directory register, deregister, show, list."""

from __future__ import annotations

import pytest

from fanin import Tracker
from fanin.cli.exits import ExitCode


@pytest.fixture(autouse=True)
def _channel(tracker: Tracker) -> None:
    tracker.ledger.ports.channels.queues["q1"] = []


def test_a_registration_is_made_shown_listed_and_ended(run) -> None:
    made = run("directory", "register", "cars", "a", "q1", "-a", "colour=red", "--lease", "90s", "--json")
    assert made.document["lease"] == 90
    assert run("directory", "register", "cars", "b", "q1").stdout.startswith("until ")
    assert "colour=red" in run("directory", "show", "cars", "a").stdout
    listed = run("directory", "list", "cars", "-a", "colour=red").stdout
    assert "q1" in listed
    assert len(run("directory", "list", "cars", "--all", "--json").document["registrations"]) == 2
    page = run("directory", "list", "cars", "--limit", "1")
    assert "--cursor" in page.stderr
    assert run("directory", "deregister", "cars", "a").stdout == "deregistered\n"
    assert "nobody" in run("directory", "deregister", "cars", "a").stdout
    assert run("directory", "show", "cars", "a").exit_code == ExitCode.NOT_FOUND
    assert run("directory", "register", "cars", "a", "elsewhere").exit_code == ExitCode.REFUSED
