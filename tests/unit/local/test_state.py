"""The description of the local stack, and what is made of it."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from fanin import names
from fanin.errors import LocalStackFailed
from fanin.local import environment, state
from fanin.local.emulator import Emulator
from fanin.local.state import Stack

EMULATOR = Emulator(pid=7, port=4566, auth=True)
OUTPUTS = {output: f"the {output}" for output in state.OUTPUTS.values()} | {
    names.OUTPUT_API_URL: "https://abc123.execute-api.us-east-1.amazonaws.com"
}


@pytest.fixture
def stack() -> Stack:
    return Stack.of(EMULATOR, OUTPUTS, log_file=Path("log"), fingerprint="f")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / state.FOLDER).mkdir()
    return tmp_path


def test_the_apis_url_is_the_emulators(stack: Stack) -> None:
    assert stack.api_url == "http://127.0.0.1:4566/_aws/execute-api/abc123"


def test_a_missing_output_is_named() -> None:
    outputs = {name: value for name, value in OUTPUTS.items() if name != names.OUTPUT_BUS}
    with pytest.raises(LocalStackFailed, match=f"no output {names.OUTPUT_BUS}"):
        Stack.of(EMULATOR, outputs, log_file=Path("log"), fingerprint="f")


def test_it_runs_only_on_the_process_it_was_deployed_to(stack: Stack) -> None:
    assert stack.runs_on(EMULATOR)
    assert not stack.runs_on(Emulator(pid=8, port=4566, auth=True))


def test_what_is_written_is_read(root: Path, stack: Stack) -> None:
    state.write(root, stack)
    assert state.read(root) == stack
    assert [file.name for file in (root / state.FOLDER).iterdir()] == [state.FILE]

    state.remove(root)
    state.remove(root)
    assert state.read(root) is None


def test_what_another_version_wrote_is_not_read(root: Path, stack: Stack) -> None:
    state.write(root, stack)
    file = root / state.FOLDER / state.FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | {"new_in_this_version": 1}))
    assert state.read(root) is None


def test_every_output_becomes_a_field() -> None:
    assert set(state.OUTPUTS) <= {field.name for field in fields(Stack)}
    declared = {value for name, value in vars(names).items() if name.startswith("OUTPUT_")}
    assert set(OUTPUTS) == declared


def test_environment_leaves_nothing_to_a_real_account(stack: Stack) -> None:
    variables = environment(stack)
    assert variables["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
    assert variables["AWS_SESSION_TOKEN"] == ""
    assert variables[names.ENV_WORDS_TABLE] == stack.words_table
    assert variables[names.ENV_API_URL] == stack.api_url
