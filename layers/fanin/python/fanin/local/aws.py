"""The emulator as an AWS account: its region, account number and keys, and boto3 clients for it."""

from __future__ import annotations

from typing import Any, Final

from boto3.session import Session

REGION: Final = "us-east-1"
ACCOUNT: Final = "000000000000"
ACCESS_KEY: Final = "test"  # the root user; fanin.local says what else the emulator accepts
SECRET_KEY: Final = "test"  # noqa: S105 - the emulator has no other, and everybody knows it


def session() -> Session:
    """A boto3 session with the root user's keys, whatever the environment holds."""
    return Session(aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY, region_name=REGION)


def client(service: str, endpoint_url: str) -> Any:
    """A boto3 client for the emulator; annotate the result with its type stub.

    Args:
        service: boto3's name of the service, such as ``sqs``.
        endpoint_url: URL of the emulator.
    """
    return session().client(service, endpoint_url=endpoint_url)
