"""What describes a stack, the variables made of it, and clients whatever the environment says of accounts."""

from pathlib import Path

import pytest

from fanin import names
from fanin.errors import LocalStackFailed
from fanin.local import aws, environment
from fanin.local.emulator import Emulator
from tests.unit.local_stacks import EMULATOR, OUTPUTS, STACK


@pytest.fixture(autouse=True)
def _environment_of_a_real_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAREAL")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "real")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "real")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://real.example.com")


def test_a_session_has_the_emulators_keys_only():
    keys = aws.session().get_credentials()
    assert (keys.access_key, keys.secret_key, keys.token) == (aws.ACCESS_KEY, aws.SECRET_KEY, None)
    assert aws.session().region_name == aws.REGION


def test_a_client_talks_to_the_emulator():
    client = aws.client("sqs", "http://127.0.0.1:4599")
    assert (client.meta.endpoint_url, client.meta.region_name) == ("http://127.0.0.1:4599", aws.REGION)


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
