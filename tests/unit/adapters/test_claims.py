"""Claim checks against S3 in memory."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws

from fanin.adapters.claims import S3Claims
from fanin.adapters.memory import FixedClock
from fanin.errors import ServiceUnavailable

BUCKET = "claims"


@pytest.fixture
def s3() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("s3", config=Config(signature_version="s3v4"))
        where = {"LocationConstraint": client.meta.region_name}
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
        yield client


def test_an_upload_is_signed_for_its_size_and_type_and_for_a_quarter_of_an_hour(s3):
    claim = S3Claims(lambda: BUCKET, FixedClock(5), lambda: s3).upload(
        "8/0/a", size=7, content_type="text/plain"
    )

    query = parse_qs(urlsplit(claim.url).query)
    assert query["X-Amz-Expires"] == ["900"]
    assert query["X-Amz-SignedHeaders"] == ["content-length;content-type;host"]
    assert claim.headers == {"Content-Type": "text/plain", "Content-Length": "7"}
    assert claim.expires_at == 5 + 900_000


def test_what_was_uploaded_is_there_and_can_be_downloaded(s3):
    claims = S3Claims(lambda: BUCKET, FixedClock(), lambda: s3)
    assert not claims.exists("8/0/a")

    s3.put_object(Bucket=BUCKET, Key="8/0/a", Body=b"x")

    assert claims.exists("8/0/a")
    assert "/8/0/a?" in claims.download("8/0/a")


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-east-1", "claims.s3.us-east-1.amazonaws.com"),
        ("eu-west-1", "claims.s3.eu-west-1.amazonaws.com"),
        ("ap-southeast-4", "claims.s3.ap-southeast-4.amazonaws.com"),
        ("cn-north-1", "claims.s3.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "claims.s3.us-gov-west-1.amazonaws.com"),
    ],
)
def test_a_url_names_the_host_of_its_region_which_does_not_redirect(monkeypatch, region, host):
    # Given a function in a region
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    claims = S3Claims(lambda: BUCKET, FixedClock())
    # When it signs URLs
    urls = [claims.download("8/0/a"), claims.upload("8/0/a", size=1, content_type="text/plain").url]
    # Then both are for that region's host
    assert [urlsplit(url).hostname for url in urls] == [host, host]


@pytest.mark.parametrize("endpoint", ["http://localhost:4566", "https://minio.test"])
def test_a_url_of_an_emulator_names_the_bucket_in_its_path(monkeypatch, endpoint):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    assert S3Claims(lambda: BUCKET, FixedClock()).download("8/0/a").startswith(f"{endpoint}/claims/8/0/a?")


@pytest.fixture
def client() -> Any:
    return boto3.client("s3")


@pytest.mark.parametrize("code", ["404", "NoSuchKey", "403"])
def test_an_object_that_s3_does_not_show_is_not_there(client, aws, code):
    """Without the permission to list a bucket, S3 answers 403 for a key that does not exist."""
    aws.add_client_error("head_object", code, expected_params={"Bucket": BUCKET, "Key": "8/0/a"})

    assert S3Claims(lambda: BUCKET, FixedClock(), lambda: client).exists("8/0/a") is False


@pytest.mark.parametrize(
    ("code", "status", "expected"), [("SlowDown", 503, ServiceUnavailable), ("400", 400, ClientError)]
)
def test_an_answer_that_says_nothing_of_the_object_is_an_error(client, aws, *, code, status, expected):
    aws.add_client_error("head_object", code, http_status_code=status)

    with pytest.raises(expected):
        S3Claims(lambda: BUCKET, FixedClock(), lambda: client).exists("8/0/a")


def test_what_the_service_stores_is_loaded_and_what_is_not_there_is_left_out(s3):
    claims = S3Claims(lambda: BUCKET, FixedClock(), lambda: s3)
    for n in range(12):
        claims.put(f"8/{n}/a", b"%d" % n)

    loaded = claims.load([f"8/{n}/a" for n in range(12)] + ["8/0/b"])

    assert loaded == {f"8/{n}/a": b"%d" % n for n in range(12)}
    assert s3.head_object(Bucket=BUCKET, Key="8/0/a")["ContentType"] == "application/json"
    assert claims.load([]) == {}


def test_an_object_that_s3_hides_is_left_out_and_one_that_cannot_be_read_now_is_an_error(client, aws):
    claims = S3Claims(lambda: BUCKET, FixedClock(), lambda: client)
    aws.add_client_error("get_object", "AccessDenied", http_status_code=403)
    aws.add_client_error("get_object", "SlowDown", http_status_code=503)

    assert claims.load(["8/0/a"]) == {}
    with pytest.raises(ServiceUnavailable):
        claims.load(["8/0/a"])
