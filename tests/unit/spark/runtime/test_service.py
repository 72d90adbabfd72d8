"""What tasks learn about the stack; how they reach it is tested on one."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from fanin.client import local_stack
from fanin.client.local_stack import Stack
from fanin.errors import NotConfigured
from fanin.spark.runtime.service import Service

TABLES = {
    "FANIN_BATCHES_TABLE": "b",
    "FANIN_WORDS_TABLE": "w",
    "FANIN_PARTS_TABLE": "p",
    "FANIN_DIRECTORY_TABLE": "d",
}


def test_credentials_do_not_travel() -> None:
    # Given an environment with keys
    environment = {
        **TABLES,
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-west-1",
    }

    # When the tasks learn which stack it is
    told = dict(Service.from_env(environment).environment)

    # Then they learn region and tables, and no key
    assert told == {name: value for name, value in environment.items() if name != "AWS_SECRET_ACCESS_KEY"}


def test_an_environment_that_names_no_table_is_refused() -> None:
    # Given only an API, when a job starts, then it says which variable is missing
    with pytest.raises(NotConfigured, match=r"FANIN_BATCHES_TABLE is not set.*FANIN_PROFILE=local"):
        Service.from_env({"FANIN_API_URL": "https://example.org"})


def test_a_profile_names_the_local_stack_and_its_keys(local: Stack) -> None:
    # Given an environment that names another stack, and the profile
    environment = {**TABLES, "AWS_SECRET_ACCESS_KEY": "of an account", "FANIN_PROFILE": "local"}

    # When the tasks learn which stack it is
    told = dict(Service.from_env(environment).environment)

    # Then it is the local one, as it is for a tracker
    assert told["FANIN_BATCHES_TABLE"] == local.batches_table
    assert told["AWS_ENDPOINT_URL"] == local.endpoint_url
    assert (told["AWS_SECRET_ACCESS_KEY"], told["AWS_SESSION_TOKEN"]) == (local.secret_access_key, "")
    # and they need not look for it themselves
    assert "FANIN_PROFILE" not in told


def test_what_the_profile_takes_back_reaches_the_tasks(local: Stack) -> None:
    # Given a driver whose environment has endpoints of its own, which its tasks may have inherited
    elsewhere = {
        "AWS_ENDPOINT_URL_DYNAMODB": "https://dynamodb.test",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    }

    # When the tasks learn which stack it is
    told = dict(Service.from_env({**elsewhere, "FANIN_PROFILE": "local"}).environment)

    # Then the first is empty, which counts as not set
    assert told["AWS_ENDPOINT_URL"] == local.endpoint_url
    assert {name: told[name] for name in elsewhere} == {
        "AWS_ENDPOINT_URL_DYNAMODB": "",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
    }


def test_endpoints_that_the_driver_ignores_are_ignored_by_its_tasks() -> None:
    environment = {**TABLES, "AWS_ENDPOINT_URL": "http://x", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}
    assert dict(Service.from_env(environment).environment) == environment


def test_a_profile_without_its_stack_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotConfigured, match="start it with `fanin local up`"):
        Service.from_env({**TABLES, "FANIN_PROFILE": "local"})
    with pytest.raises(NotConfigured, match="the only profile is 'local'"):
        Service.from_env({**TABLES, "FANIN_PROFILE": "prod"})


def test_its_services_are_where_the_local_stack_has_them(
    monkeypatch: pytest.MonkeyPatch, local: Stack
) -> None:
    # Given a process that names its stack by the profile alone
    for name in local_stack.variables(local):
        monkeypatch.setenv(name, "of another stack")  # which is there again after the test
    local_stack.write(Path.cwd(), replace(local, endpoint_url="http://127.0.0.1:1", region="eu-west-1"))
    service = Service.from_env({"FANIN_PROFILE": "local"})

    # When a job asks where the services are that it calls, then that is the stack
    assert service.endpoints("dynamodb", "sqs") == {
        "DynamoDB": "http://127.0.0.1:1",
        "SQS": "http://127.0.0.1:1",
    }


@pytest.mark.parametrize("name", TABLES)
def test_each_table_is_asked_for_before_a_task_needs_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # Given all tables, then a driver and its tasks have a ledger
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    for variable in TABLES:
        monkeypatch.setenv(variable, "of another stack")  # which is there again after the test
    assert Service.from_env(TABLES).ledger()

    # When one is missing, then the driver says so
    with pytest.raises(NotConfigured, match=name):
        Service.from_env({variable: table for variable, table in TABLES.items() if variable != name})


def test_the_same_stack_is_the_same_value_wherever_it_is_made() -> None:
    first, again = Service.from_env(TABLES), Service.from_env(dict(reversed(TABLES.items())))
    assert first == again
    assert hash(first) == hash(again)
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301  our own


def test_by_default_it_is_the_stack_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("HOME", "/nowhere")

    told = dict(Service.from_env().environment)

    assert told["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert told.items() >= TABLES.items()
    assert "HOME" not in told
