"""How bodies travel, and how a request of a route is read and checked."""

import base64
import re
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, Final

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from fanin import names
from fanin.domain import limits
from fanin.entry.http.callers import principal_of
from fanin.entry.http.route import HttpRequest, HttpRoute
from fanin.entry.http.validation import HEADERS, QUERY, Check, checked, compiled
from fanin.errors import InvalidRequest, RequestTooLarge, UnsupportedMediaType
from fanin.wire.json_types import IDEMPOTENCY_KEY, JsonType
from fanin.wire.shapes import object_schema

_JSON_TYPE: Final = (
    r"(application/json|[\w.!#$&^+-]+/[\w.!#$&^-]+\+json)"  # RFC 6839 for the suffix
    # RFC 8259 knows no parameter, and JSON is UTF-8: others say nothing, and another charset is an error
    r"(\s*;(\s*charset\s*=\s*\"?utf-?8\"?|(?!\s*charset\s*=)\s*[\w.-]+\s*=\s*([^\s\",;]+|\"[^\"]*\"))?)*\s*"
)


def check_is_json(content_type: str, encoding: str) -> None:
    """Refuse a body of another type, or compressed; one without a type is taken for JSON.

    Many tools call a body a form by default, and so do the pages of other sites, which
    need no permission for that.

    Args:
        content_type: the request's header; empty if it has none.
        encoding: the same of Content-Encoding.

    Raises:
        UnsupportedMediaType: the type is neither application/json nor ends in +json, or is not in UTF-8; or
            the body is compressed.
    """
    if encoding.strip().lower() not in {"", "identity"}:
        raise UnsupportedMediaType(
            f"the body has the Content-Encoding {limits.shown(encoding)}; send it plain, without that header"
        )
    if content_type and not re.fullmatch(_JSON_TYPE, content_type.strip(), re.IGNORECASE):
        raise UnsupportedMediaType(
            f"the body must be JSON in UTF-8, but its Content-Type is {limits.shown(content_type)}; send the"
            " header Content-Type: application/json"
        )


def as_get(event: dict[str, Any]) -> dict[str, Any]:
    """The event of a HEAD request with GET as its method: both have the same answer, but for the body."""
    context = event["requestContext"]
    return {**event, "requestContext": {**context, "http": {**context["http"], "method": "GET"}}}


_WORDS: Final = {"true": True, "false": False}


class Decoder:
    """Reads requests of one route; the schemas are compiled with the first request."""

    def __init__(self, route: HttpRoute) -> None:
        self._route = route

    def __call__(self, event: APIGatewayProxyEventV2, path: Mapping[str, str]) -> HttpRequest:
        """Read and check a request.

        Raises:
            InvalidRequest: it is malformed.
            RequestTooLarge: its body has more bytes than the route takes, or an array in it too long.
            UnsupportedMediaType: its body is not said to be JSON.
        """
        route = self._route
        kinds = {**route.required, **route.optional}
        asked = event.query_string_parameters.items()
        query = {name: _typed(kinds.get(name), value) for name, value in asked}
        self._check_query(query)
        sent = {name.lower(): value for name, value in event.headers.items()}
        if route.body:
            check_is_json(sent.get("content-type", ""), sent.get("content-encoding", ""))
        return HttpRequest(
            path,
            {name: kinds[name].decode(value) for name, value in query.items()},
            _key(sent) if route.keyed else None,
            checked(route.body, _body(event, route.most_bytes)) if route.body else {},
            route.body,
            principal_of(event),
        )

    @cached_property
    def _check_query(self) -> Check:
        required = self._route.required
        return compiled(object_schema({**required, **self._route.optional}, required), QUERY)


@cache
def _check_headers() -> Check:
    return compiled(object_schema({names.IDEMPOTENCY_HEADER: IDEMPOTENCY_KEY}, ()), HEADERS)


def _key(sent: Mapping[str, str]) -> str | None:
    """The idempotency key among headers, whose names are in lower case."""
    if (header := sent.get(names.IDEMPOTENCY_HEADER.lower())) is None:
        return None
    _check_headers()({names.IDEMPOTENCY_HEADER: header})
    return IDEMPOTENCY_KEY.decode(header)


def _typed(kind: JsonType[Any] | None, text: str) -> Any:
    """Read a query parameter as its schema's type; what cannot be read stays text, and fails the check."""
    wanted = kind.schema["type"] if kind else "string"
    if wanted == "integer" and re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    return _WORDS.get(text, text) if wanted == "boolean" else text


def _body(event: APIGatewayProxyEventV2, most: int) -> bytes:
    text = event.body or ""
    if len(text) > most * 4 // 3 + 4:
        raise _too_large(most)
    try:
        body = base64.b64decode(text, validate=True) if event.is_base64_encoded else text.encode()
    except ValueError as error:  # of base64, or of a character that is half a surrogate pair
        raise InvalidRequest("the body is not text in UTF-8; send JSON") from error
    if len(body) > most:
        raise _too_large(most)
    return body


def _too_large(most: int) -> RequestTooLarge:
    return RequestTooLarge(f"the body is over {most} bytes; send it in parts")
