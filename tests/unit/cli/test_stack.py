"""Commands on the service itself."""

import logging
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fanin import local
from fanin.cli.exits import ExitCode
from fanin.errors import LocalStackFailed
from fanin.local import Status
from tests.unit.local_stacks import STACK


def test_up_says_where_everything_is(run, monkeypatch):
    asked = []

    def up(*, port, auth, report):
        report("deploying")
        asked.append((port, auth))
        return STACK

    monkeypatch.setattr(local, "up", up)
    result = run("local", "up", "--port", 4599, "--auth")
    assert (result.exit_code, asked) == (0, [(4599, True)])
    assert re.fullmatch(r" 1  deploying  \d+\.\d s\n", result.stderr)
    assert STACK.api_url in result.stdout
    assert run("local", "up", "--json").document["environment"] == STACK.environment
    assert asked[1] == (None, None)


def test_up_that_fails_says_why(run, monkeypatch):
    def up(**options):
        raise LocalStackFailed("port 4599 is taken")

    monkeypatch.setattr(local, "up", up)
    result = run("local", "up")
    assert (result.exit_code, result.stderr) == (ExitCode.WRONG, "fanin: port 4599 is taken\n")


@pytest.mark.parametrize(("was", "said"), [(True, "stopped"), (False, "nothing was running")])
def test_down(run, monkeypatch, was, said):
    monkeypatch.setattr(local, "down", lambda: was)
    assert run("local", "down").stdout.strip() == said
    assert run("local", "down", "--json").document == {"stopped": was}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (Status("up", STACK, Path("log")), ExitCode.OK),
        (Status("down", None, Path("log")), ExitCode.WRONG),
        (Status("unhealthy", None, Path("log")), ExitCode.WRONG),
    ],
    ids=lambda value: getattr(value, "state", ""),
)
def test_status_exits_with_1_unless_it_is_up(run, monkeypatch, status, code):
    monkeypatch.setattr(local, "status", lambda: status)
    result = run("local", "status")
    assert result.exit_code == code
    assert status.state in result.stdout
    assert (STACK.work_queue_url in result.stdout) is (status.state == "up")
    assert run("local", "status", "--json").document["state"] == status.state


def test_env_is_for_a_shell(run, monkeypatch):
    # Given a stack with a value that a shell would take apart
    stack = replace(STACK, environment={**STACK.environment, "FANIN_BATCHES_TABLE": "a table's"})
    monkeypatch.setattr(local, "status", lambda: Status("up", stack, Path("log")))
    exports = run("local", "env").stdout
    # Then a shell has the variables as they are
    shown = subprocess.run(
        exports + 'printf %s "$FANIN_BATCHES_TABLE"', shell=True, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "a table's"
    assert run("local", "env", "--json").document == local.environment(stack)


def test_env_takes_back_the_endpoints_of_single_services(run, monkeypatch):
    # Given a shell in which one service has an endpoint of its own, which clients prefer
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "https://sqs.test")
    monkeypatch.setattr(local, "status", lambda: Status("up", STACK, Path("log")))
    assert "export AWS_ENDPOINT_URL_SQS=''" in run("local", "env").stdout.splitlines()


def test_env_of_no_stack_says_what_to_do(run, monkeypatch):
    monkeypatch.setattr(local, "status", lambda: Status("down", None, Path("log")))
    result = run("local", "env")
    assert (result.exit_code, result.stdout) == (ExitCode.DENIED, "")
    assert "fanin local up" in result.stderr


def test_openapi_is_the_document_that_the_api_serves(run):
    result = run("openapi", "--json")
    assert result.document["openapi"].startswith("3.1")
    assert "/v1/acks" in result.document["paths"]


def test_openapi_without_powertools_says_what_to_install(run, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "fanin.entry.http.table", None)
    result = run("openapi")
    assert result.exit_code == ExitCode.DENIED
    assert "fanin[lambda]" in result.stderr


@pytest.fixture
def asked(monkeypatch) -> dict[str, Any]:
    """What the command asks to be served."""
    found: dict[str, Any] = {}
    monkeypatch.setattr("fanin.console.serve.serve", lambda fanin, **more: found.update(more, fanin=fanin))
    return found


def test_it_is_read_only_on_this_machine_unless_told(run, tracker, asked):
    assert run("ui").exit_code == 0
    assert asked["fanin"] is tracker.services
    assert {name: asked[name] for name in ("write", "host", "port", "browser", "name")} == {
        "write": False,
        "host": "127.0.0.1",
        "port": None,
        "browser": True,
        "name": "tables",
    }


def test_options_are_passed_on(run, asked):
    run("ui", "--write", "--port", 9000, "--no-browser", "--host", "0.0.0.0")
    assert (asked["write"], asked["port"], asked["browser"], asked["host"]) == (True, 9000, False, "0.0.0.0")


@pytest.mark.parametrize(
    ("options", "name"), [(["--local"], "local"), (["--api-url", "https://api.example/x"], "api.example")]
)
def test_it_says_which_stack_it_shows(run, asked, options, name):
    run("ui", *options)
    assert asked["name"] == name


def test_what_buttons_do_is_printed(run, asked, monkeypatch):
    monkeypatch.setattr(
        "fanin.console.serve.serve", lambda *_, **__: logging.getLogger("fanin.console").info("cancelled 5")
    )
    assert "cancelled 5" in run("ui").stderr


def test_ctrl_c_is_not_an_error(run, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fanin.console.serve.serve", interrupted)
    result = run("ui")
    assert (result.exit_code, result.stderr.strip()) == (0, "stopped")


def test_without_its_packages_it_says_how_to_get_them(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "fanin.console.serve", None)
    result = run("ui")
    assert result.exit_code != 0
    assert "pip install 'fanin[ui]'" in result.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("",), "the tables would be copied to themselves"),
        ((".restored", "--replace"), "--replace needs --batch"),
        ((".restored", "--batch", "x"), "--batch"),
    ],
)
def test_what_would_do_harm_is_wrong_usage(run, args, says):
    refused = run("restore", *args)
    assert refused.exit_code == 2
    assert says in " ".join(refused.stderr.split())


def test_the_tables_of_the_service_must_be_known(run, monkeypatch):
    monkeypatch.delenv("FANIN_BATCHES_TABLE", raising=False)
    assert "FANIN_BATCHES_TABLE is not set" in run("restore", ".restored").stderr
