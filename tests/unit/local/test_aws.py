"""Clients of the emulator, whatever the environment says about real accounts."""

import pytest

from fanin.local import aws


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
