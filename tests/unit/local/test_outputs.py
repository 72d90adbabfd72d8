"""The description of what was deployed, and the variables that are made of it."""

from dataclasses import fields
from pathlib import Path

import pytest

from fanin import names
from fanin.client.local_stack import Stack
from fanin.errors import LocalStackFailed
from fanin.local import aws, environment
from fanin.local.emulator import Emulator

EMULATOR = Emulator(pid=7, port=4566, auth=True)
OUTPUTS = {output: f"the {output}" for output in aws.OUTPUTS.values()} | {
    names.OUTPUT_API_URL: "https://abc123.execute-api.us-east-1.amazonaws.com"
}


@pytest.fixture
def stack() -> Stack:
    return aws.describe(EMULATOR, OUTPUTS, log_file=Path("log"), fingerprint="f")


def test_the_apis_url_is_the_emulators(stack: Stack) -> None:
    assert stack.api_url == "http://127.0.0.1:4566/_aws/execute-api/abc123"


def test_a_missing_output_is_named() -> None:
    given = {name: value for name, value in OUTPUTS.items() if name != names.OUTPUT_BUS}
    with pytest.raises(LocalStackFailed, match=f"no output {names.OUTPUT_BUS}"):
        aws.describe(EMULATOR, given, log_file=Path("log"), fingerprint="f")


def test_it_runs_only_on_the_process_it_was_deployed_to(stack: Stack) -> None:
    assert aws.runs_on(stack, EMULATOR)
    assert not aws.runs_on(stack, Emulator(pid=8, port=4566, auth=True))


def test_every_output_becomes_a_field() -> None:
    assert set(aws.OUTPUTS) <= {field.name for field in fields(Stack)}
    declared = {value for name, value in vars(names).items() if name.startswith("OUTPUT_")}
    assert set(OUTPUTS) == declared


def test_environment_leaves_nothing_to_a_real_account(stack: Stack) -> None:
    variables = environment(stack)
    assert variables["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
    assert variables["AWS_SESSION_TOKEN"] == ""
    assert variables[names.ENV_WORDS_TABLE] == stack.words_table
    assert variables[names.ENV_API_URL] == stack.api_url
