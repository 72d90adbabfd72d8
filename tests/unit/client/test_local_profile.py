"""``FANIN_PROFILE=local`` as the variables of the local stack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import boto3
import pytest

from fanin.client import local_stack
from fanin.client.local_stack import FOLDER, profiled, variables
from fanin.errors import NotConfigured
from tests.unit.local_stacks import STACK


def test_the_variables_lead_aws_there() -> None:
    told = variables(STACK)
    assert (told["AWS_ENDPOINT_URL"], told["FANIN_API_URL"]) == (STACK.endpoint_url, STACK.api_url)
    assert told["AWS_SESSION_TOKEN"] == ""


def test_the_profile_comes_before_the_names_of_another_stack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Given a local stack, and an environment that names another one
    (tmp_path / FOLDER).mkdir()
    local_stack.write(tmp_path, STACK)
    monkeypatch.chdir(tmp_path)
    other = {"FANIN_API_URL": "https://api.test", "HOME": "/home/me"}

    # When the profile names the local stack, then it counts; without the profile the other one does
    assert profiled({**other, "FANIN_PROFILE": "local"}) == {
        **other,
        "FANIN_PROFILE": "local",
        **variables(STACK),
    }
    assert profiled(other) == other


@pytest.mark.parametrize(
    ("config", "ignored"), [("", "true"), ("[default]\nignore_configured_endpoint_urls = true\n", None)]
)
def test_no_service_of_the_profile_is_where_the_environment_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, config: str, ignored: str | None
) -> None:
    # Given an environment or a file that leads boto3 elsewhere, service by service, or always to AWS
    (tmp_path / "config").write_text(config)
    monkeypatch.setenv("AWS_CONFIG_FILE", f"{tmp_path}/config")
    monkeypatch.delenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", raising=False)
    stack = replace(STACK, endpoint_url="http://127.0.0.1:4566", region="eu-west-1")
    (tmp_path / FOLDER).mkdir()
    local_stack.write(tmp_path, stack)
    monkeypatch.chdir(tmp_path)
    elsewhere = {
        "AWS_ENDPOINT_URL_SQS": "https://sqs.test",
        "AWS_ENDPOINT_URL_DYNAMODB": "https://dynamodb.test",
        **({} if ignored is None else {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": ignored}),
    }
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    for name, value in elsewhere.items():
        monkeypatch.setenv(name, value)

    # When a process takes over the variables of the profile, as the tasks of a job do
    for name, value in profiled({**elsewhere, "FANIN_PROFILE": "local"}).items():
        monkeypatch.setenv(name, value)

    # Then boto3 calls the local stack
    for service in ("sqs", "dynamodb", "s3"):
        assert boto3.Session().client(service).meta.endpoint_url == "http://127.0.0.1:4566"


def test_another_profile_is_refused() -> None:
    with pytest.raises(NotConfigured, match="FANIN_PROFILE is 'prod'; the only profile is 'local'"):
        profiled({"FANIN_PROFILE": "prod"})
