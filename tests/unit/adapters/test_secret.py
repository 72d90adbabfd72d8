"""A secret is read once in five minutes."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from fanin.adapters.memory import FixedClock
from fanin.adapters.webhooks import REMEMBERED_MS, Secret
from fanin.errors import AccessDenied, NotConfigured

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:webhooks-abcdef"


@pytest.fixture
def client() -> Any:
    return boto3.client(
        "secretsmanager",
        region_name="eu-west-1",
        aws_access_key_id="x",
        aws_secret_access_key="y",  # noqa: S106
    )


def test_a_secret_is_remembered_for_a_while_and_then_read_again(client: Any) -> None:
    clock = FixedClock()
    secret = Secret(lambda: ARN, clock, lambda: client)
    with Stubber(client) as stub:
        for value in ("first", "second"):
            answer = {"ARN": ARN, "Name": "webhooks", "SecretString": value}
            stub.add_response("get_secret_value", answer, {"SecretId": ARN})
        assert [secret(), secret()] == ["first", "first"]
        clock.advance(REMEMBERED_MS)
        assert secret() == "second"


def test_a_refusal_is_told(client: Any) -> None:
    with Stubber(client) as stub:
        stub.add_client_error("get_secret_value", "AccessDeniedException", http_status_code=400)
        with pytest.raises(AccessDenied):
            Secret(lambda: ARN, FixedClock(), lambda: client)()


def test_a_secret_that_cannot_be_used_says_so_as_an_error_of_fanin(client: Any) -> None:
    """Any other error would be a defect: its target would be tried for weeks, and never say why."""
    with Stubber(client) as stub:
        secret = Secret(lambda: ARN, FixedClock(), lambda: client)
        for code in ("InvalidRequestException", "DecryptionFailure"):
            stub.add_client_error("get_secret_value", code, http_status_code=400)
            with pytest.raises(NotConfigured, match=code):
                secret()
        stub.add_response("get_secret_value", {"ARN": ARN, "Name": "webhooks", "SecretBinary": b"x" * 32})
        with pytest.raises(NotConfigured, match="binary"):
            secret()
