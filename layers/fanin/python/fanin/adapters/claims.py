"""Claim checks: large payloads are uploaded and downloaded by signed URLs, never through a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fanin.adapters.aws import client_factory, ignoring, once, translated
from fanin.adapters.forks import Threads
from fanin.app.ports.system import Clock
from fanin.domain.claim_checks import ClaimCheck
from fanin.errors import ServiceUnavailable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_SECONDS: Final = 900
_THREADS: Final = 10  # as many connections as a client of boto3 keeps
_DELETED: Final = 1_000  # keys of one request
_ABSENT: Final = {"404", "NoSuchKey", "NotFound", "403", "AccessDenied"}
"""How S3 answers for a missing object: with the last two, where a process may not list the bucket."""
_REGIONAL: Final[Any] = {"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"}
"""Signs URLs for the host of the bucket's region.

Otherwise botocore signs them for the global host. That redirects to the region while a bucket is new, and the
signature is not valid there.
"""
_AWS: Final = re.compile(r"https?://s3[.-]")
"""An endpoint of AWS. A bucket has no host name of its own on an emulator."""


def _client() -> Any:
    # A stalled request must not use up the time of the function, which has other replies to store.
    made = partial(client_factory, "s3", attempts=3, signature_version="s3v4")
    client = made(s3=_REGIONAL)()
    return client if _AWS.match(client.meta.endpoint_url) else made(s3={"addressing_style": "path"})()


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
        self._s3 = once(client, "s3")
        self._threads = Threads(_THREADS, "claims", self._s3)

    def upload(self, key: str, *, size: int, content_type: str) -> ClaimCheck:
        what = {"Bucket": self._bucket(), "Key": key, "ContentLength": size, "ContentType": content_type}
        expires_at = self._clock.now() + _SECONDS * 1000
        with translated():
            url = self._s3().generate_presigned_url("put_object", Params=what, ExpiresIn=_SECONDS)
        return ClaimCheck(key, url, {"Content-Type": content_type, "Content-Length": str(size)}, expires_at)

    def download(self, key: str) -> str:
        what = {"Bucket": self._bucket(), "Key": key}
        with translated():
            return self._s3().generate_presigned_url("get_object", Params=what, ExpiresIn=_SECONDS)

    def put(self, key: str, content: bytes) -> None:
        bucket = self._bucket()
        with translated():
            self._s3().put_object(Bucket=bucket, Key=key, Body=content, ContentType="application/json")

    def put_all(self, contents: Mapping[str, bytes]) -> None:
        self._threads.map(self.put, contents.keys(), contents.values())

    def delete(self, keys: Sequence[str]) -> None:
        bucket = self._bucket()
        with translated():
            for start in range(0, len(keys), _DELETED):
                objects: Any = [{"Key": key} for key in keys[start : start + _DELETED]]
                answer = self._s3().delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
                if refused := answer.get("Errors"):
                    # The answer is a 200 all the same; what cannot be deleted now is asked for again.
                    raise ServiceUnavailable(f"{len(refused)} objects were not deleted: {refused[0]['Code']}")

    def load(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        bucket = self._bucket()
        contents = self._threads.map(lambda key: self._load(bucket, key), keys)
        return {key: content for key, content in zip(keys, contents, strict=True) if content is not None}

    def _load(self, bucket: str, key: str) -> bytes | None:
        with translated(), ignoring(_ABSENT):
            return self._s3().get_object(Bucket=bucket, Key=key)["Body"].read()
        return None

    def exists(self, key: str) -> bool:
        bucket = self._bucket()
        with translated(), ignoring(_ABSENT):
            self._s3().head_object(Bucket=bucket, Key=key)
            return True
        return False
