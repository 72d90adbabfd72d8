"""The HTTP API as one function: Powertools finds the route, and every error becomes a problem."""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeVar

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from fanin import names
from fanin.app.api import Fanin
from fanin.app.ledger.reservation import replayed
from fanin.entry import wiring
from fanin.entry.http import decoding, problems
from fanin.entry.http.callers import admit
from fanin.entry.http.decoding import Decoder
from fanin.entry.http.route import HttpRequest, HttpRoute
from fanin.entry.http.v1 import ledger
from fanin.entry.observe import count, count_receipts, gauge, logger
from fanin.errors import INTERNAL_ERROR, STATUS, FaninError, InvalidRequest, LimitReached

T = TypeVar("T")

COMPRESSED_FROM: Final = 1024
"""Longer answers are compressed, if their clients take gzip; shorter ones are sent in one packet anyway."""


def _listed(page: Any) -> None:
    count(names.METRIC_BUFFERS_UNREADABLE, len(page.unreadable))
    for name in page.unreadable:
        logger.error("buffer not listed: its record cannot be read", extra={"buffer": name})


def _taken(work: Any) -> None:
    for one in work:
        gauge(names.METRIC_BUFFER_WAIT, one.waited_ms)


_ANSWERED: Final[Mapping[str, Callable[[Any], None]]] = {
    "markItems": lambda marked: count_receipts(marked.receipts),
    "releaseItems": lambda released: count(names.METRIC_RELEASED, released.released),
    "openFrame": lambda _: count(names.METRIC_FRAMES_OPENED),
    "reply": lambda receipts: count(names.METRIC_REPLIES, sum(receipt.first for receipt in receipts)),
    "getBuffer": lambda level: gauge(names.METRIC_BUFFER_DEPTH, level.pending),
    "listBuffers": _listed,
    "takeWork": _taken,
}
"""Operation → what the value that it answers with adds to the metrics."""


def with_metrics(operation: str, act: Callable[[], T]) -> T:
    """Make a call, and count what comes of it."""
    try:
        value = act()
    except LimitReached:
        if operation == "putWork":
            count(names.METRIC_BUFFER_REJECTS)
        raise
    if note := _ANSWERED.get(operation):
        note(value)
    return value


def respond(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer an event of an HTTP API (payload format 2.0) from the tables that the environment names."""
    return serve(_application(patterns=_is_of_patterns(event)), event, context)


@cache
def _application(*, patterns: bool) -> APIGatewayHttpResolver:
    return application(
        wiring.services, None if patterns else ledger.ROUTES, scope_prefix=wiring.settings().jwt_scope_prefix
    )


def _is_of_patterns(event: Mapping[str, Any]) -> bool:
    """Whether no route of the plain ledger takes the request; then all others are imported, too."""
    method, path = event["requestContext"]["http"]["method"], event["rawPath"]
    method = "GET" if method == "HEAD" else method
    return not any(route.method == method and route.matches(path) for route in ledger.ROUTES)


def serve(app: APIGatewayHttpResolver, event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer an event.

    The path must be that of a route to the letter: IAM has judged it as it was sent, and its wildcards match
    slashes, too. The header ``X-Correlation-Id`` comes back as the caller sent it; without a usable one, it
    is the request's id.
    """
    sent = {name.lower(): value for name, value in event.get("headers", {}).items()}
    correlation_id = sent.get(names.CORRELATION_HEADER.lower(), "")
    if not re.fullmatch(r"[!-~]{1,128}", correlation_id):
        correlation_id = event["requestContext"]["requestId"]
    logger.set_correlation_id(correlation_id)
    head = event["requestContext"]["http"]["method"] == "HEAD"
    answer: dict[str, Any] = app.resolve(decoding.as_get(event) if head else event, context)
    answer["headers"][names.CORRELATION_HEADER] = correlation_id
    if head:
        answer["body"] = ""
    return answer


def application(
    services: Callable[[], Fanin], routes: Sequence[HttpRoute] | None = None, *, scope_prefix: str = ""
) -> APIGatewayHttpResolver:
    """Make the resolver of a route table.

    Args:
        services: gives the use cases; called with each request, so that callers get its errors as problems.
        routes: the table; by default all that the API has.
        scope_prefix: of the scopes that tokens need for each route; empty lets every caller use all routes.
    """
    routes = _all_routes() if routes is None else routes
    app = APIGatewayHttpResolver()

    def request_id() -> str:
        return str(app.current_event.request_context.request_id)

    def not_found(_: Exception) -> Response[str]:
        path, method = app.current_event.path, app.current_event.http_method
        allowed = _allowed(routes, path)
        allow: problems.Headers = {"Allow": ", ".join(allowed)}
        if allowed and method == "OPTIONS":
            return Response(204, body="", headers=allow)
        if method in allowed:  # Powertools matches fewer characters
            return refused(InvalidRequest("the path has a character that ids and names cannot have"))
        if allowed:
            detail = f"method not allowed; this path accepts {allow['Allow']}"
            return problems.problem(405, "method-not-allowed", detail, request_id(), allow)
        detail = "there is no such path; see /openapi.json for all paths"
        return problems.problem(404, "no-such-path", detail, request_id())

    def refused(error: FaninError) -> Response[str]:
        if type(error) not in STATUS:
            return crashed(error)
        logger.info("refused", extra={"code": error.code})
        return problems.of(error, request_id())

    def crashed(_: Exception) -> Response[str]:
        logger.exception("request failed")
        detail = "the service failed; try again, and report the request id if it fails again"
        return problems.problem(500, INTERNAL_ERROR, detail, request_id())

    taken = {path for route in routes for path in route.paths if "{" not in path}
    for route in routes:
        _add(app, route, services, scope_prefix, taken)
    app.not_found(not_found)
    app.exception_handler(FaninError)(refused)
    app.exception_handler(Exception)(crashed)
    return app


def _allowed(routes: Sequence[HttpRoute], path: str) -> list[str]:
    """The methods that a path accepts."""
    found = [route for route in routes if route.matches(path)]
    methods = {route.method for route in [route for route in found if path in route.paths] or found}
    also = {"HEAD", "OPTIONS"} if "GET" in methods else {"OPTIONS"}
    return sorted(methods | also) if methods else []


def _all_routes() -> Sequence[HttpRoute]:
    from fanin.entry.http.table import ROUTES  # noqa: PLC0415  only requests of patterns need them

    return ROUTES


def _add(
    app: APIGatewayHttpResolver,
    route: HttpRoute,
    services: Callable[[], Fanin],
    scope_prefix: str,
    taken: Collection[str],
) -> None:
    decode = Decoder(route)

    def answered(path: Mapping[str, str], act: Callable[[Fanin, HttpRequest], Any]) -> Response[str]:
        if scope_prefix:
            admit(app.current_event, route.operation, route.groups, scope_prefix)
        request = decode(app.current_event, path)
        replayed.set(False)
        value = with_metrics(route.operation, lambda: act(services(), request))
        return _answer(route, request, value)

    def endpoint(**path: str) -> Response[str]:
        here = app.current_event.path
        # Powertools ignores a line break at the end; and "closed", which a route spells out, is not a batch
        if not route.matches(here) or (path and here in taken):
            raise NotFoundError
        if route.action is None:
            return answered(path, route.act)
        from fanin.entry.http.actions import logged  # noqa: PLC0415  only actions need it

        with logged(route, app.current_event, path) as act:
            return answered(path, act)

    for path in route.paths:
        app.route(path.replace("{", "<").replace("}", ">"), method=route.method)(endpoint)


def _answer(route: HttpRoute, request: HttpRequest, value: Any) -> Response[str]:
    if route.answer is None:
        return Response(route.status, body="")
    headers = problems.Headers()
    if route.location is not None:
        headers["Location"] = route.location(request, value)
    if request.key is not None and replayed.get():
        headers[names.REPLAYED_HEADER] = "true"
    answer = json.dumps(route.answer.encode(value), separators=(",", ":"))
    long = len(answer) > COMPRESSED_FROM
    if long:
        headers["Vary"] = "Accept-Encoding"
    return Response(route.status, "application/json", answer, headers=headers, compress=long)
