"""The ledger over HTTPS: the same calls, answered by the API."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

from fanin.client.backoff import Backoff
from fanin.client.https.transport import Request, Response, Sign, SigV4, Transport, Urllib3Transport
from fanin.domain.acks import Acks, Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.reports import Batches, Expired, Failures, Missing, Progress, Verdict
from fanin.entry.http.statuses import STATUS
from fanin.errors import (
    AccessDenied,
    FaninError,
    InvalidRequest,
    NotConfigured,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
)
from fanin.names import API_ROOT, IDEMPOTENCY_HEADER
from fanin.wire import ledger as wire
from fanin.wire import reports as wire_reports

T = TypeVar("T")

_BY_CODE: Final = {error.code: error for error in STATUS}


class HttpsLedger:
    """Implements the ``Ledger`` protocol against a deployed API.

    Faults of the way there (no answer, 5xx, throttling) are tried again, which every call allows: ``add``
    carries an idempotency key made here where the caller gave none, and an ``open`` without a key whose
    answer was lost leaves an empty batch that the reaper ends. What the service decided, a full batch
    included, is raised at once, as the direct ledger does.

    Args:
        url: the API's root, the stack's output ``ApiUrl``.
        sign: how requests are authorized.
        transport: sends a request.
        attempts: tries in all.
        backoff: how long to wait between them; a Retry-After of the service is kept up to its bound.
    """

    def __init__(
        self,
        url: str,
        *,
        sign: Sign | None = None,
        transport: Transport | None = None,
        attempts: int = 6,
        backoff: Backoff | None = None,
    ) -> None:
        if not url.startswith(("https://", "http://")):
            raise NotConfigured(f"{url!r} is no URL of an API; take the output ApiUrl of the stack")
        self._root = url.rstrip("/") + API_ROOT
        self._sign = sign or SigV4()
        self._transport = transport or Urllib3Transport()
        self._attempts = attempts
        self._backoff = backoff or Backoff()

    def open(self, request: OpenBatch, *, key: str | None = None) -> Batch:
        headers = {} if key is None else {IDEMPOTENCY_HEADER: key}
        return self.call(wire.decode_batch, "POST", "/batches", wire.encode_open(request), headers=headers)

    def add(self, batch_id: int, count: int, *, key: str | None = None) -> Group:
        path, headers = f"/batches/{batch_id}/items", {IDEMPOTENCY_HEADER: key or uuid.uuid4().hex}
        return self.call(wire.decode_group, "POST", path, {"count": count}, headers=headers)

    def ack(
        self,
        items: Sequence[str] = (),
        *,
        ranges: Sequence[ItemRange] = (),
        counts: Sequence[Count] = (),
    ) -> list[Receipt]:
        body = wire.encode_acks(Acks(items, ranges, counts))
        return self.call(wire.decode_receipts, "POST", "/acks", body)

    def fail(self, failures: Sequence[Failure]) -> list[Receipt]:
        body = wire.encode_acks(Acks(failures=failures))
        return self.call(wire.decode_receipts, "POST", "/failures", body)

    def close(self, batch_id: int) -> Batch:
        return self.call(wire.decode_batch, "POST", f"/batches/{batch_id}/close")

    def cancel(self, batch_id: int) -> Batch:
        return self.call(wire.decode_batch, "POST", f"/batches/{batch_id}/cancel")

    def status(self, batch_id: int, *, exact: bool = False) -> Progress:
        query = {"exact": "true"} if exact else {}
        return self.call(wire_reports.decode_progress, "GET", f"/batches/{batch_id}", query=query)

    def missing(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Missing:
        query = {"cursor": cursor, "limit": limit}
        return self.call(wire_reports.decode_missing, "GET", f"/batches/{batch_id}/missing", query=query)

    def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Failures:
        query = {"cursor": cursor, "limit": limit}
        return self.call(wire_reports.decode_failures, "GET", f"/batches/{batch_id}/failures", query=query)

    def verify(self, batch_id: int, *, cursor: str | None = None, repair: bool = True) -> Verdict:
        query = {"cursor": cursor, "repair": "true" if repair else "false"}
        return self.call(wire_reports.decode_verdict, "POST", f"/batches/{batch_id}/verify", query=query)

    def list(self, state: State, *, cursor: str | None = None, limit: int = 100) -> Batches:
        query = {"state": state.value, "cursor": cursor, "limit": limit}
        return self.call(wire_reports.decode_batches, "GET", "/batches", query=query)

    def expire(self, state: State, *, idle_since: int) -> Expired:
        query = {"state": state.value, "idle_since": wire.encode_time(idle_since)}
        return self.call(wire_reports.decode_expired, "DELETE", "/batches", query=query)

    def call(
        self,
        decode: Callable[[wire.Json], T],
        method: str,
        path: str,
        body: wire.Json | None = None,
        *,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        repeatable: bool = True,
    ) -> T:
        """Make a call of the API, the patterns' included.

        Args:
            decode: reads the answer.
            method: of HTTP.
            path: below the API's root, percent-encoded.
            body: JSON, if the route takes one.
            query: parameters; None leaves one out.
            headers: besides those that every request has.
            repeatable: whether it may be sent again when its answer was lost.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        url = self._root + path + ("?" + urlencode(given, quote_via=quote) if given else "")
        payload = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        request = Request(method, url, {"Content-Type": "application/json", **(headers or {})}, payload)
        attempt = 0
        while True:
            try:
                return self._once(request, decode)
            except (ServiceUnavailable, Throttled) as error:
                attempt += 1
                lost = isinstance(error, ServiceUnavailable)
                if attempt >= self._attempts or (lost and not repeatable):
                    raise
                self._backoff.wait(attempt - 1, error.retry_after)

    def _once(self, request: Request, decode: Callable[[wire.Json], T]) -> T:
        response = self._transport(request._replace(headers=self._sign(request)))
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            raise error_of(response)
        try:
            return decode(json.loads(response.body) if response.body else {})
        except (ValueError, KeyError, TypeError, InvalidRequest) as error:
            raise ServiceUnavailable(
                f"the answer to {request.method} {request.url} is not of the API's form; "
                "check that the URL is that of a fanin API of this version"
            ) from error


def error_of(response: Response) -> FaninError:
    """The error that a refusal stands for: by its problem type, or by its status where it has none.

    API Gateway and proxies refuse in their own words, so a body that is no problem document is no fault.
    """
    try:
        parsed = json.loads(response.body)
    except ValueError:
        parsed = None
    problem: wire.Json = parsed if isinstance(parsed, dict) else {}
    code = str(problem.get("type", "")).rpartition(":")[2]
    after = _seconds(problem.get("retry_after")) or _seconds(response.headers.get("retry-after"))
    known = _BY_CODE.get(code)
    if known is not None:
        return known(str(problem.get("detail") or problem.get("title") or code), retry_after=after)
    said = problem.get("message") or problem.get("detail") or response.body[:200].decode(errors="replace")
    return _by_status(response.status, f"HTTP {response.status}: {said}", after)


def _by_status(status: int, said: str, after: int | None) -> FaninError:
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return AccessDenied(f"{said}; check that your credentials may call this API")
        case HTTPStatus.NOT_FOUND | HTTPStatus.METHOD_NOT_ALLOWED:
            return NotConfigured(f"{said}; there is no such route, check the URL of the API")
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return RequestTooLarge(said)
        case HTTPStatus.TOO_MANY_REQUESTS:
            return Throttled(said, retry_after=after)
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return ServiceUnavailable(said, retry_after=after)
        case _:
            return InvalidRequest(said)


def _seconds(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isdecimal() else None
