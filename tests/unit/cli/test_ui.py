"""fanin ui."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest


@pytest.fixture
def asked(monkeypatch) -> dict[str, Any]:
    """What the command asks to be served."""
    found: dict[str, Any] = {}
    monkeypatch.setattr("fanin.console.serve.serve", lambda fanin, **more: found.update(more, fanin=fanin))
    return found


def test_it_is_read_only_on_this_machine_unless_told(run, tracker, asked) -> None:
    assert run("ui").exit_code == 0
    assert asked["fanin"] is tracker.services
    assert {name: asked[name] for name in ("write", "host", "port", "browser", "name")} == {
        "write": False,
        "host": "127.0.0.1",
        "port": None,
        "browser": True,
        "name": "tables",
    }


def test_options_are_passed_on(run, asked) -> None:
    run("ui", "--write", "--port", 9000, "--no-browser", "--host", "0.0.0.0")  # noqa: S104
    assert (asked["write"], asked["port"], asked["browser"], asked["host"]) == (True, 9000, False, "0.0.0.0")  # noqa: S104


@pytest.mark.parametrize(
    ("options", "name"), [(["--local"], "local"), (["--api-url", "https://api.example/x"], "api.example")]
)
def test_it_says_which_stack_it_shows(run, asked, options, name) -> None:
    run("ui", *options)
    assert asked["name"] == name


def test_what_buttons_do_is_printed(run, asked, monkeypatch) -> None:
    monkeypatch.setattr(
        "fanin.console.serve.serve", lambda *_, **__: logging.getLogger("fanin.console").info("cancelled 5")
    )
    assert "cancelled 5" in run("ui").stderr


def test_ctrl_c_is_not_an_error(run, monkeypatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fanin.console.serve.serve", interrupted)
    result = run("ui")
    assert (result.exit_code, result.stderr.strip()) == (0, "stopped")


def test_without_its_packages_it_says_how_to_get_them(run, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "fanin.console.serve", None)
    result = run("ui")
    assert result.exit_code != 0
    assert "pip install 'fanin[ui]'" in result.stderr
