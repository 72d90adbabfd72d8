"""Claim checks: large payloads are uploaded and downloaded by signed URLs, never through a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from fanin.adapters.aws import error_code, translated
from fanin.app.ports.system import Clock
from fanin.domain.scatter import ClaimCheck

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_SECONDS: Final = 900
_ABSENT: Final = {"404", "NoSuchKey", "NotFound"}


def _client() -> Any:
    import boto3  # noqa: PLC0415  the heaviest import of all, and few processes need it
    from botocore.config import Config  # noqa: PLC0415

    return boto3.client("s3", config=Config(signature_version="s3v4"))


class S3Claims:
    """A ``ClaimChecks``.

    Args:
        bucket: gives its name, at each call; what it raises is raised there.
        clock: tells when a URL expires.
        client: makes the client, when first used.
    """

    def __init__(
        self, bucket: Callable[[], str], clock: Clock, client: Callable[[], S3Client] = _client
    ) -> None:
        self._bucket = bucket
        self._clock = clock
        self._make_client = client

    @cached_property
    def _s3(self) -> S3Client:
        with translated():
            return self._make_client()

    def upload(self, key: str, *, size: int, content_type: str) -> ClaimCheck:
        what = {"Bucket": self._bucket(), "Key": key, "ContentLength": size, "ContentType": content_type}
        expires_at = self._clock.now() + _SECONDS * 1000
        with translated():
            url = self._s3.generate_presigned_url("put_object", Params=what, ExpiresIn=_SECONDS)
        return ClaimCheck(key, url, {"Content-Type": content_type, "Content-Length": str(size)}, expires_at)

    def download(self, key: str) -> str:
        what = {"Bucket": self._bucket(), "Key": key}
        with translated():
            return self._s3.generate_presigned_url("get_object", Params=what, ExpiresIn=_SECONDS)

    def exists(self, key: str) -> bool:
        bucket = self._bucket()
        with translated():
            try:
                self._s3.head_object(Bucket=bucket, Key=key)
            except ClientError as error:
                # Without permission to list the bucket, S3 answers 403 for a missing object.
                if error_code(error) in _ABSENT | {"403"}:
                    return False
                raise
        return True
