"""Claim checks against S3 in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws

from fanin.adapters.claims import S3Claims
from fanin.adapters.memory import FixedClock

BUCKET = "claims"


@pytest.fixture
def s3() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("s3", config=Config(signature_version="s3v4"))
        where = {"LocationConstraint": client.meta.region_name}
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
        yield client


def test_an_upload_is_signed_for_its_size_and_type_and_for_a_quarter_of_an_hour(s3) -> None:
    claim = S3Claims(lambda: BUCKET, FixedClock(5), lambda: s3).upload(
        "8/0/a", size=7, content_type="text/plain"
    )

    query = parse_qs(urlsplit(claim.url).query)
    assert query["X-Amz-Expires"] == ["900"]
    assert query["X-Amz-SignedHeaders"] == ["content-length;content-type;host"]
    assert claim.headers == {"Content-Type": "text/plain", "Content-Length": "7"}
    assert claim.expires_at == 5 + 900_000


def test_what_was_uploaded_is_there_and_can_be_downloaded(s3) -> None:
    claims = S3Claims(lambda: BUCKET, FixedClock(), lambda: s3)
    assert not claims.exists("8/0/a")

    s3.put_object(Bucket=BUCKET, Key="8/0/a", Body=b"x")

    assert claims.exists("8/0/a")
    assert "/8/0/a?" in claims.download("8/0/a")
