"""What tasks learn about the stack; how they reach it is tested on one."""

from __future__ import annotations

import pickle

import pytest

from fanin.errors import NotConfigured
from fanin.spark.runtime.service import Service

TABLES = {"FANIN_BATCHES_TABLE": "b", "FANIN_WORDS_TABLE": "w", "FANIN_PARTS_TABLE": "p"}


def test_credentials_do_not_travel() -> None:
    # Given an environment with keys
    environment = {
        "FANIN_BATCHES_TABLE": "b",
        "FANIN_WORDS_TABLE": "w",
        "FANIN_PARTS_TABLE": "p",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-west-1",
    }

    # When the tasks learn which stack it is
    told = dict(Service.from_env(environment).environment)

    # Then they learn region and tables, and no key
    assert told == {name: value for name, value in environment.items() if name != "AWS_SECRET_ACCESS_KEY"}


def test_an_environment_that_names_no_table_is_refused() -> None:
    # Given only an API, when a job starts, then it says which variable is missing
    with pytest.raises(NotConfigured, match="FANIN_BATCHES_TABLE"):
        Service.from_env({"FANIN_API_URL": "https://example.org"})


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


def test_its_settings_are_those_of_the_driver() -> None:
    settings = Service.from_env(TABLES).settings()
    assert (settings.batches_table, settings.words_table, settings.parts_table) == ("b", "w", "p")
