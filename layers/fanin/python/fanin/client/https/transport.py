"""How requests reach the API: the connection, and the signature."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, EnvProvider
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from fanin.adapters.forks import closed_in_children
from fanin.errors import NotConfigured, ServiceUnavailable

if TYPE_CHECKING:
    import boto3
    import botocore.session


_CONNECTIONS: Final = 16  # kept for each host
_CONNECT_TIMEOUT: Final = 5  # seconds
STALE: Final = 0.5
"""Seconds without a request after which connections are not used for what must not be repeated."""
_REGION: Final = "AWS_DEFAULT_REGION"  # comes before the profile for boto3, too


class NotSent(ServiceUnavailable):
    """No connection was made, so nothing was sent: the request may be sent again, whatever it does."""


class HttpsRequest(NamedTuple):
    """One HTTP request.

    Attributes:
        method: the HTTP method.
        url: with the query, percent-encoded.
        headers: to send.
        body: the bytes; None for none.
        fresh: use no connection that may be gone, because a lost request looks like a lost answer, and the
            call might not be repeatable.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    fresh: bool = False


class Response(NamedTuple):
    """The answer to a request; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpsTransport(Protocol):
    """Sends one request, once."""

    def __call__(self, request: HttpsRequest) -> Response:
        """Send it.

        Raises:
            NotSent: there was no connection.
            ServiceUnavailable: no answer came; the request may or may not have been carried out.
        """


Sign = Callable[[HttpsRequest], Mapping[str, str]]
"""Returns the headers to send in place of the request's own; called before every attempt."""


class Urllib3Transport:
    """Keeps connections open and is safe to share between threads.

    Args:
        read_timeout: seconds to wait for the answer; an HTTP API of API Gateway gives up after 30.
    """

    def __init__(self, *, read_timeout: float = 35) -> None:
        self._timeout = urllib3.Timeout(connect=_CONNECT_TIMEOUT, read=read_timeout)
        self._pool: urllib3.PoolManager | None = None
        self._used = 0.0
        self._lock = threading.Lock()
        closed_in_children(self)

    def close(self) -> None:
        """Let the connections go; the next request makes others."""
        self._pool = None

    def __call__(self, request: HttpsRequest) -> Response:
        # Lambda purges idle connections of a process that it froze, and gateways those of any: the loss of a
        # request on such a connection looks like that of its answer.
        if request.fresh and not 0 <= time.time() - self._used <= STALE:
            self._manager().clear()
        try:
            answer = self._manager().request(
                request.method,
                request.url,
                body=request.body,
                # Not signed, since proxies on the way may change it; the body is unpacked here.
                headers={"Accept-Encoding": "gzip", **request.headers},
                retries=False,  # nor redirects: the signature is not for their target
            )
        except HTTPError as error:
            host = urlsplit(request.url).netloc
            unsent = isinstance(error, NewConnectionError | ConnectTimeoutError)
            raise (NotSent if unsent else ServiceUnavailable)(
                f"no answer from {host}: {error}; check the URL and the network"
            ) from error
        finally:
            self._used = time.time()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Response(answer.status, headers, answer.data)

    def _manager(self) -> urllib3.PoolManager:
        with self._lock:
            if self._pool is None:
                self._pool = urllib3.PoolManager(maxsize=_CONNECTIONS, timeout=self._timeout)
            return self._pool


def unsigned(request: HttpsRequest) -> Mapping[str, str]:
    """Leaves requests as they are, for an API deployed with ``auth=none``."""
    return request.headers


class Bearer:
    """Sends a JWT, for an API deployed with ``auth=jwt``.

    Args:
        token: returns a valid token; called before every attempt, so that it can refresh it.
    """

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    def __call__(self, request: HttpsRequest) -> Mapping[str, str]:
        return {**request.headers, "Authorization": f"Bearer {self._token()}"}


class Identity:
    """Credentials and region, found where ``boto3.Session`` finds them, without the time that boto3 takes.

    Keys in the environment come first for boto3, too; only profiles and roles need a session of botocore.

    Args:
        keys: to use instead, whatever the environment holds.
        region: the same.
    """

    def __init__(self, keys: Credentials | None = None, region: str | None = None) -> None:
        self._keys = keys
        self._region = region

    @cached_property
    def _session(self) -> botocore.session.Session:
        import botocore.session  # noqa: PLC0415 - a third of the time that a short command takes

        return botocore.session.get_session()

    @property
    def region_name(self) -> str | None:
        """The region of the environment or of the profile."""
        if self._region is None:
            self._region = os.environ.get(_REGION) or self._session.get_config_variable("region")
        return self._region

    def get_credentials(self) -> Credentials | None:
        """The credentials, which refresh themselves where they expire; None if there are none."""
        if self._keys is None:
            self._keys = EnvProvider().load() or self._session.get_credentials()
        return self._keys


class SigV4:
    """AWS Signature Version 4, for an API deployed with ``auth=iam``.

    Args:
        session: where credentials come from; they are read before every attempt, so they may be refreshed.
        region: of the API; by default that in its URL, else the session's.
    """

    def __init__(self, session: boto3.Session | Identity | None = None, region: str | None = None) -> None:
        self._session = session or Identity()
        self._region = region

    def __call__(self, request: HttpsRequest) -> Mapping[str, str]:
        credentials = self._session.get_credentials()
        region = self._region or _region_of(request.url) or self._session.region_name
        if credentials is None:
            raise NotConfigured(
                "no AWS credentials found to sign with; run `aws configure` or set AWS_PROFILE"
            )
        if region is None:
            raise NotConfigured("the AWS region to sign requests for is not known; set AWS_DEFAULT_REGION")
        signed = AWSRequest(
            request.method, request.url, headers=dict(request.headers), data=request.body or b""
        )
        SigV4Auth(credentials.get_frozen_credentials(), "execute-api", region).add_auth(signed)
        return dict(signed.headers.items())


def _region_of(url: str) -> str | None:
    host = urlsplit(url).hostname or ""
    labels = host.split(".")
    return labels[2] if labels[1:2] == ["execute-api"] and "amazonaws" in labels else None
