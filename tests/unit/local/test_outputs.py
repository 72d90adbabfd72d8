"""The description of what was deployed, and the variables that are made of it."""

from pathlib import Path

import pytest

from fanin import names
from fanin.errors import LocalStackFailed
from fanin.local import aws, environment
from fanin.local.emulator import Emulator
from tests.unit.local_stacks import EMULATOR, OUTPUTS, STACK


def test_the_apis_url_is_the_emulators():
    assert STACK.api_url == "http://127.0.0.1:4566/_aws/execute-api/abc123"


def test_a_missing_output_is_named():
    given = {name: value for name, value in OUTPUTS.items() if name != "Bus"}
    with pytest.raises(LocalStackFailed, match="no output Bus"):
        aws.describe(EMULATOR, given, log_file=Path("log"), fingerprint="f")


def test_it_runs_only_on_the_process_it_was_deployed_to():
    assert aws.runs_on(STACK, EMULATOR)
    assert not aws.runs_on(STACK, Emulator(pid=8, port=4566, auth=True))


def test_environment_leaves_nothing_to_a_real_account():
    variables = environment(STACK)
    assert variables["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
    assert variables["AWS_SESSION_TOKEN"] == ""
    assert variables[names.ENV_WORDS_TABLE] == STACK.words_table
    assert variables[names.ENV_API_URL] == STACK.api_url
