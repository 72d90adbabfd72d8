"""The emulator as an AWS account: its region, number and keys, and boto3 clients for it."""

from __future__ import annotations

from typing import Any, Final

from boto3.session import Session

REGION: Final = "us-east-1"
ACCOUNT: Final = "000000000000"
ACCESS_KEY: Final = "test"  # the account's root, see fanin.local on AUTH
SECRET_KEY: Final = "test"  # noqa: S105 - the emulator's, not a secret


def session() -> Session:
    """A boto3 session with the emulator's root keys, whatever the environment holds."""
    return Session(aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY, region_name=REGION)


def client(service: str, endpoint_url: str) -> Any:
    """A boto3 client for the emulator; annotate the result with its type stub.

    Args:
        service: boto3's name, such as "sqs".
        endpoint_url: where the emulator listens.
    """
    return session().client(service, endpoint_url=endpoint_url)
