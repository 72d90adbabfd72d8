"""The commands on the local stack, with its starting and stopping replaced."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fanin import local
from fanin.cli.exits import ExitCode
from fanin.errors import LocalStackFailed
from fanin.local import Status
from tests.unit.local_stacks import STACK


def test_up_says_where_everything_is(run, monkeypatch):
    # Given
    asked = []

    def up(*, port, auth, report):
        report("deploying")
        asked.append((port, auth))
        return STACK

    monkeypatch.setattr(local, "up", up)
    # When
    result = run("local", "up", "--port", 4599, "--auth")
    # Then
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
    # When
    exports = run("local", "env").stdout
    # Then a shell has the variables as they are
    shown = subprocess.run(  # noqa: S602
        exports + 'printf %s "$FANIN_BATCHES_TABLE"', shell=True, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "a table's"
    assert run("local", "env", "--json").document == local.environment(stack)


def test_env_takes_back_the_endpoints_of_single_services(run, monkeypatch):
    # Given a shell in which one service has an endpoint of its own, which clients prefer
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "https://sqs.test")
    monkeypatch.setattr(local, "status", lambda: Status("up", STACK, Path("log")))
    # Then it is empty afterwards
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
