"""What a route is, and how a request becomes a call of a use case."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from fanin.app.services import Services
from fanin.entry.http.schemas import Schema, record
from fanin.entry.http.validation import compiled, parse
from fanin.errors import FaninError, InvalidRequest, RequestTooLarge

MAX_BODY: Final = 1024 * 1024
"""Bytes of a request's body."""

_WORDS: Final = {"true": True, "false": False}


class Request(NamedTuple):
    """A request that has been checked.

    Attributes:
        path: parameters of the path, as text.
        query: parameters of the query, of the types that the route says.
        headers: those that the route names and the request has.
        body: JSON of the route's schema; None if it takes no body.
    """

    path: Mapping[str, str]
    query: Mapping[str, Any]
    headers: Mapping[str, str]
    body: Any


class Route(NamedTuple):
    """One row of the route table: everything that the resolver and the OpenAPI document know of a route.

    Attributes:
        method: of HTTP.
        path: with parameters in braces.
        operation: unique name.
        summary: one line.
        act: does what the route is for, and returns the JSON to answer with.
        answer: name of the answer's schema; None for no body.
        status: of success.
        body: name of the body's schema; None if it takes none.
        named: parameters of the path that are no batch ids; what acts checks them.
        required: query parameters that must be there.
        optional: those that may.
        headers: headers that the route reads.
        errors: what it can raise besides what every route can.
    """

    method: str
    path: str
    operation: str
    summary: str
    act: Callable[[Services, Request], Any]
    answer: str | None
    status: int = 200
    body: str | None = None
    named: Mapping[str, Schema] = {}
    required: Mapping[str, Schema] = {}
    optional: Mapping[str, Schema] = {}
    headers: Mapping[str, Schema] = {}
    errors: tuple[type[FaninError], ...] = ()

    def matches(self, path: str) -> bool:
        """Whether the path is the route's, whatever the method."""
        return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", self.path), path) is not None


class Decoder:
    """Reads requests of one route; its schemas are compiled at the first."""

    def __init__(self, route: Route) -> None:
        self._route = route

    def __call__(self, event: APIGatewayProxyEventV2, path: Mapping[str, str]) -> Request:
        """Read and check a request.

        Raises:
            InvalidRequest: it is malformed.
            RequestTooLarge: its body is over 1 MiB, or an array in it too long.
        """
        route = self._route
        named = {**route.required, **route.optional}
        query = {
            name: _typed(named.get(name), value) for name, value in event.query_string_parameters.items()
        }
        sent = {name.lower(): value for name, value in event.headers.items()}
        headers = {name: sent[name.lower()] for name in route.headers if name.lower() in sent}
        return Request(
            path,
            self._check_query(query, "the query"),
            self._check_headers(headers, "the headers"),
            parse(route.body, _body(event)) if route.body else None,
        )

    @cached_property
    def _check_query(self) -> Callable[[Any, str], Any]:
        return compiled(record(self._route.required, self._route.optional))

    @cached_property
    def _check_headers(self) -> Callable[[Any, str], Any]:
        return compiled(record({}, self._route.headers))


def _typed(schema: Schema | None, text: str) -> Any:
    """Read a query parameter as its schema's type; what is not of it stays text, for the check to refuse."""
    kind = schema["type"] if schema else "string"
    if kind == "integer" and re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    return _WORDS.get(text, text) if kind == "boolean" else text


def _body(event: APIGatewayProxyEventV2) -> bytes:
    text = event.body or ""
    if len(text) > MAX_BODY * 4 // 3 + 4:
        raise _too_large()
    try:
        body = base64.b64decode(text, validate=True) if event.is_base64_encoded else text.encode()
    except (binascii.Error, UnicodeEncodeError) as error:
        raise InvalidRequest("the body is not base64 or UTF-8 text as its event says") from error
    if len(body) > MAX_BODY:
        raise _too_large()
    return body


def _too_large() -> RequestTooLarge:
    return RequestTooLarge(f"the body is over {MAX_BODY} bytes; send it in parts")
