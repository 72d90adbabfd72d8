"""fanin route put, show, list, delete, send."""

from __future__ import annotations

from fanin.cli.exits import ExitCode


def test_a_route_is_made_shown_listed_and_deleted(run) -> None:
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


def test_an_event_is_sent(run) -> None:
    detail = '{"correlation_id": "mine"}'
    assert run("route", "send", "shop", "Placed", detail).stdout == "mine\n"
    for bad in ("{", "[]"):
        assert run("route", "send", "shop", "Placed", bad).exit_code == ExitCode.USAGE
