"""The directory, routes, and events that are routed."""

import pytest

from fanin import Tracker
from fanin.cli.exits import ExitCode


@pytest.fixture(autouse=True)
def _channel(tracker: Tracker) -> None:
    tracker.ledger.ports.channels.queues["q1"] = []


def test_a_registration_is_made_shown_listed_and_ended(run):
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


def test_a_route_is_made_shown_listed_and_deleted(run):
    assert (
        run("route", "put", "orders", "desk", '{"source": ["shop"]}', "-a", "size=big").stdout == "orders\n"
    )
    shown = run("route", "show", "orders").stdout
    assert '{"source": ["shop"]}' in shown
    assert "size=big" in shown
    assert "desk" in run("route", "list").stdout
    assert run("route", "delete", "orders").stdout == "deleted\n"
    assert "no such route" in run("route", "delete", "orders").stdout
    assert run("route", "show", "orders").exit_code == ExitCode.NOT_FOUND


def test_an_event_is_sent(run):
    detail = '{"correlation_id": "mine"}'
    assert run("route", "send", "shop", "Placed", detail).stdout == "mine\n"
    for bad in ("{", "[]"):
        assert run("route", "send", "shop", "Placed", bad).exit_code == ExitCode.USAGE
