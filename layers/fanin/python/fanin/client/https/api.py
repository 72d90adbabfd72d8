"""The API of a deployed stack: requests, retries, and which error a refusal becomes.

The methods of a service are derived from the table of routes, where each call is declared.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from http import HTTPStatus
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote, urlencode

from fanin import errors
from fanin.adapters.backoff import Backoff
from fanin.client.https.transport import (
    HttpsRequest,
    HttpsTransport,
    NotSent,
    Response,
    Sign,
    SigV4,
    Urllib3Transport,
)
from fanin.domain import limits
from fanin.entry.http.calls import Call
from fanin.entry.http.route import HttpRoute, Repeat
from fanin.names import API_ROOT, IDEMPOTENCY_HEADER
from fanin.wire.json_text import compact
from fanin.wire.json_types import IDEMPOTENCY_KEY, Json
from fanin.wire.shapes import Shape, plain

T = TypeVar("T")
P = TypeVar("P")

NOTHING: Final = plain("Nothing", {})
"""The shape of an answer without a body."""

_FORBIDDEN: Final = (
    "; check that your credentials may call this API. In a VPC, an interface endpoint for execute-api with"
    " private DNS answers so for every public API: turn its private DNS off, or call the API by a custom"
    " domain name"
)
_NO_ROUTE: Final = (errors.NotConfigured, "; there is no such route, so check the URL of the API")
_BY_STATUS: Final[Mapping[int, tuple[type[errors.FaninError], str]]] = {
    HTTPStatus.UNAUTHORIZED: (errors.AccessDenied, "; check that your credentials may call this API"),
    HTTPStatus.FORBIDDEN: (errors.AccessDenied, _FORBIDDEN),
    HTTPStatus.NOT_FOUND: _NO_ROUTE,
    HTTPStatus.METHOD_NOT_ALLOWED: _NO_ROUTE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (errors.RequestTooLarge, "; send the request in parts"),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: (
        errors.UnsupportedMediaType,
        "; the library sends application/json, so look for a proxy that changes headers",
    ),
    HTTPStatus.TOO_MANY_REQUESTS: (
        errors.Throttled,
        "; API Gateway throttles the route, the API or the account, so send fewer requests at a time",
    ),
}
"""What refusals without a problem of fanin's mean: those of API Gateway, whose bodies are a message alone."""


class HttpsApi:
    """Makes calls of a deployed API.

    A call that got no answer or a 5xx is sent again if it may be repeated; one that was throttled, or that
    found no connection, always. Refusals, such as a full batch, are raised at once.

    Args:
        url: the API's root, the stack's output ``ApiUrl``.
        sign: how requests are authorized.
        transport: sends a request.
        backoff: how often a call is sent at most, and how long to wait in between; a Retry-After of the
            service is kept up to the longest wait.

    Raises:
        NotConfigured: the URL is not an http or https URL.
    """

    def __init__(
        self,
        url: str,
        *,
        sign: Sign | None = None,
        transport: HttpsTransport | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        if not url.startswith(("https://", "http://")):
            raise errors.NotConfigured(
                f"{url!r} is not the URL of an API; take the output ApiUrl of the stack"
            )
        self._root = url.rstrip("/") + API_ROOT
        self._sign = sign or SigV4()
        self._transport = transport or Urllib3Transport()
        self._backoff = backoff or Backoff(tries=6, base=0.1, cap=20.0)

    def call(
        self,
        answer: Shape[T],
        method: str,
        path: str,
        body: Json | None = None,
        *,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        repeatable: bool | Callable[[], bool] = True,
        once: bool = False,
        fresh: bool = False,
    ) -> T:
        """Make a call.

        Args:
            answer: shape of the answer.
            method: HTTP method.
            path: below the API's root, percent-encoded.
            body: JSON, if the route takes one.
            query: parameters; None leaves one out.
            headers: besides those that every request has.
            repeatable: whether it may be sent again when its answer was lost; a function is asked only then,
                and raises if it cannot tell.
            once: never send it again, because the caller would rather go on.
            fresh: use no connection that may be gone, because the call may turn out not to be repeatable.

        Raises:
            OutcomeUnknown: the answer was lost, and the call may not be repeated.
            FaninError: the service refused the call, or could not be reached.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        url = self._root + path + ("?" + urlencode(given, quote_via=quote) if given else "")
        payload = None if body is None else compact(body, "the request").encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        request = HttpsRequest(method, url, sent, payload, fresh=fresh or repeatable is False)
        attempt = 0
        while True:
            try:
                return self._once(request, answer)
            except (errors.ServiceUnavailable, errors.Throttled) as error:
                attempt += 1
                lost = not isinstance(error, errors.Throttled | NotSent)
                if lost and (harm := _harm_of_repeating(repeatable)):
                    raise errors.OutcomeUnknown(
                        f"{error}; {method} {path} may have taken effect, and was not sent again: {harm}"
                    ) from error
                if once or attempt >= self._backoff.tries:
                    raise
                self._backoff.wait(attempt - 1, error.retry_after)

    def _once(self, request: HttpsRequest, answer: Shape[T]) -> T:
        response = self._transport(request._replace(headers=self._sign(request)))
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            raise error_of(response)
        try:
            return answer.decode(json.loads(response.body) if response.body else {})
        except (ValueError, KeyError, TypeError, RecursionError, errors.InvalidRequest) as error:
            raise errors.ServiceUnavailable(
                f"the answer to {request.method} {request.url} is not what this version of fanin expects; "
                "check that the URL is that of a fanin API, and that both have the same version"
            ) from error


def _harm_of_repeating(repeatable: bool | Callable[[], bool]) -> str | None:
    """Why a call must not be sent again; None if it may be."""
    try:
        if repeatable() if callable(repeatable) else repeatable:
            return None
    except errors.FaninError as error:
        return (
            f"the service did not say either whether its batches are exact ({error}). A repeat does no harm"
            " to items of exact batches; an estimated batch would count them twice"
        )
    return "it would take effect twice, so find out first, for instance from the batch's status"


def error_of(response: Response) -> errors.FaninError:
    """Turn a refusal into an error, by its problem type, or by its status if it has no problem type.

    API Gateway and proxies refuse in their own words, so the body need not be a problem document.
    """
    try:
        parsed = json.loads(response.body)
    except (ValueError, RecursionError):
        parsed = None
    problem: Json = parsed if isinstance(parsed, dict) else {}
    code = str(problem.get("type", "")).rpartition(":")[2]
    after = _seconds(problem.get("retry_after")) or _seconds(response.headers.get("retry-after"))
    known = errors.BY_CODE.get(code)
    if known is errors.ItemHasChild:
        with suppress(ValueError, KeyError, TypeError):
            return errors.ItemHasChild(str(problem["detail"]), child=int(problem["child"]), retry_after=after)
        known = errors.InvalidRequest
    if known is not None:
        return known(str(problem.get("detail") or problem.get("title") or code), retry_after=after)
    error, advice = _BY_STATUS.get(response.status, (errors.InvalidRequest, ""))
    if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        error = errors.ServiceUnavailable
    said = problem.get("message") or problem.get("detail") or response.body[:200].decode(errors="replace")
    return error(f"HTTP {response.status}: {said}{advice}", retry_after=after)


def _seconds(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isdecimal() else None


class HttpsService:
    """A service of a deployed API.

    Args:
        api: the API.
    """

    _routes: Mapping[str, HttpRoute] = {}
    """The route of each call, by the name of its method."""

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    def _ask(self, name: str, given: dict[str, Any], **how: Any) -> Any:
        """Make a call.

        Args:
            name: of its method.
            given: the arguments, by name.
            how: it may be repeated, where the route alone does not tell.

        Raises:
            InvalidRequest: a caller is given, or the key is not text of 1 to 256 characters.
        """
        route = self._routes[name]
        key = given.pop("key", None)
        if given.pop("caller", None) is not None:
            raise errors.InvalidRequest(
                "over HTTPS the API knows who calls, by signature or token; leave out the caller"
            )
        may_repeat = key is not None if route.repeat is Repeat.KEYED else route.repeat is not Repeat.NEVER
        if key is None and route.keyed and route.repeat is not Repeat.KEYED:
            key = uuid.uuid4().hex  # takes effect once, however often it is sent
        headers = {}
        if key is not None:
            limits.text("key", key, limits.MAX_IDEMPOTENCY_KEY, least=1)
            headers[IDEMPOTENCY_HEADER] = IDEMPOTENCY_KEY.encode(key)
        asked = cast("Call", route.act).asked(route, given)
        answer = self._api.call(
            route.answer or NOTHING,
            route.method,
            asked.path.removeprefix(API_ROOT),
            asked.body,
            query=asked.query,
            headers=headers,
            once=route.repeat is Repeat.LATE,
            **{"repeatable": may_repeat, **how},
        )
        if route.answer is None:
            return None
        return list(answer) if type(answer) is tuple else answer


def over_https(
    protocol: Callable[..., P],
    routes: Iterable[HttpRoute],
    api: HttpsApi,
    base: type[HttpsService] = HttpsService,
) -> P:
    """Make a service with the methods of its Protocol, which stays the type that callers see.

    Args:
        protocol: of the service.
        routes: the table; those that are calls of the Protocol become methods.
        api: the API.
        base: has the methods that do more than ask.
    """
    calls = {
        route.act: route
        for route in routes
        if isinstance(route.act, Call) and route.act.service == protocol.__name__.lower()
    }
    members: dict[str, Any] = {call.name: _method(call) for call in calls if not hasattr(base, call.name)}
    members["_routes"] = {call.name: route for call, route in calls.items()}
    return cast("P", type(f"Https{protocol.__name__}", (base,), members)(api))


def _method(call: Call) -> Callable[..., Any]:
    @wraps(call.method)
    def method(self: HttpsService, *args: Any, **kwargs: Any) -> Any:
        given = call.signature.bind(*args, **kwargs)
        given.apply_defaults()
        return self._ask(call.name, given.arguments)

    return method
