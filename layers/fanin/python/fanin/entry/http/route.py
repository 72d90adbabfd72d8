"""What a route is, and how a request becomes a call of a use case."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from fanin.app.api import Fanin
from fanin.domain import limits
from fanin.domain.access import AccessGroup
from fanin.domain.ids import parse_batch_id
from fanin.domain.principals import Principal
from fanin.entry.http.bodies import check_is_json
from fanin.entry.http.callers import principal_of
from fanin.entry.http.mismatches import HEADERS, QUERY
from fanin.entry.http.validation import Check, checked, compiled
from fanin.errors import FaninError, InvalidRequest, RequestTooLarge
from fanin.names import IDEMPOTENCY_HEADER
from fanin.wire.json_types import IDEMPOTENCY_KEY, Json, JsonType, Schema
from fanin.wire.shapes import Shape, object_schema

if TYPE_CHECKING:  # the record of an action is imported with the first of them
    from fanin.wire.actions import Result

MAX_BODY: Final = 1024 * 1024
"""Bytes of a request's body."""

MAX_MARKS_BODY: Final = limits.MAX_FAILED_MESSAGES + MAX_BODY
"""The same of a request that marks items, whose failures bring their messages."""

_WORDS: Final = {"true": True, "false": False}


class Request(NamedTuple):
    """A request that has been checked.

    Attributes:
        path: parameters of the path, as text.
        query: parameters of the query that were given, as values of the types that the route names.
        headers: those that the route names and the request has.
        body: JSON of the route's shape; None if it takes no body.
        shape: of the body; None if the route takes none.
        caller: who sends it; None if nobody has checked that.
    """

    path: Mapping[str, str]
    query: Mapping[str, Any]
    headers: Mapping[str, str]
    body: Json
    shape: Shape[Any] | None
    caller: Principal | None = None

    def read(self, **given: Any) -> Any:
        """The value that the body stands for.

        Args:
            given: attributes of it that are not in the body, such as a name from the path.
        """
        if self.shape is None:
            raise TypeError("the route takes no body")
        return self.shape.decode(self.body, **given)

    @property
    def batch_id(self) -> int:
        """The batch in the path.

        Raises:
            InvalidRequest: it is not a batch id.
        """
        return parse_batch_id(self.path["batch_id"])

    @property
    def key(self) -> str | None:
        """The caller's idempotency key."""
        header = self.headers.get(IDEMPOTENCY_HEADER)
        return None if header is None else IDEMPOTENCY_KEY.decode(header)


class LoggedAction(NamedTuple):
    """That a route is an action of an operator, so that the log keeps who asked for it.

    Attributes:
        result: what it did, by the value that the route answers with.
        unless: whether a request changes nothing, as a dry run does; such a request is not logged.
    """

    result: Callable[[Any], Result] = lambda _: {}
    unless: Callable[[Request], bool] = lambda _: False


class Route(NamedTuple):
    """One row of the route table: everything that the resolver and the OpenAPI document know of a route.

    A route that changes something is either an action or of the data path.

    Attributes:
        method: of HTTP.
        path: with parameters in braces.
        operation: unique name.
        summary: what it does, in one line.
        act: calls the use case, and returns the value to answer with.
        answer: shape of the answer; None for an answer without a body.
        status: of success.
        body: shape of the body; None if the route takes none.
        named: types of the path's parameters that are not batch ids; the use case checks all of them.
        required: query parameters that must be given.
        optional: query parameters that may be given.
        headers: headers that the route reads.
        errors: what it can raise besides the errors of every route.
        most_bytes: of the body.
        action: whether operators call it, so that each call is logged with its caller.
        data_path: whether producers, consumers and other programs call it as they work, so that no call is
            logged.
        group: who may call it. A route that names no group is for administrators only.
        also: other groups that may call it, since the library does so on behalf of their callers.
        location: the path of what the route has made, or of what it was added to.
        slash: whether clients may also call it with a slash at the end, which makes another path for IAM.
    """

    method: str
    path: str
    operation: str
    summary: str
    act: Callable[[Fanin, Request], Any]
    answer: Shape[Any] | None
    status: int = 200
    body: Shape[Any] | None = None
    named: Mapping[str, JsonType[Any]] = {}
    required: Mapping[str, JsonType[Any]] = {}
    optional: Mapping[str, JsonType[Any]] = {}
    headers: Mapping[str, JsonType[Any]] = {}
    errors: tuple[type[FaninError], ...] = ()
    most_bytes: int = MAX_BODY
    action: LoggedAction | None = None
    data_path: bool = False
    group: AccessGroup = AccessGroup.ADMINISTER
    also: tuple[AccessGroup, ...] = ()
    location: Callable[[Request, Any], str] | None = None
    slash: bool = False

    @property
    def groups(self) -> tuple[AccessGroup, ...]:
        """All groups that may call it; the first is its own."""
        return (self.group, *self.also)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths at which it is called, with parameters in braces."""
        return (self.path, f"{self.path}/") if self.slash else (self.path,)

    def matches(self, path: str) -> bool:
        """Whether the path is the route's, to the letter; the method does not matter."""
        return any(re.fullmatch(re.sub(r"\{\w+\}", "[^/\n]+", one), path) for one in self.paths)


class Decoder:
    """Reads requests of one route; the schemas are compiled with the first request."""

    def __init__(self, route: Route) -> None:
        self._route = route

    def __call__(self, event: APIGatewayProxyEventV2, path: Mapping[str, str]) -> Request:
        """Read and check a request.

        Raises:
            InvalidRequest: it is malformed.
            RequestTooLarge: its body has more bytes than the route takes, or an array in it too long.
            UnsupportedMediaType: its body is not said to be JSON.
        """
        route = self._route
        kinds = {**route.required, **route.optional}
        query = {
            name: _typed(kinds.get(name), value) for name, value in event.query_string_parameters.items()
        }
        self._check_query(query)
        sent = {name.lower(): value for name, value in event.headers.items()}
        headers = {name: sent[name.lower()] for name in route.headers if name.lower() in sent}
        if route.body:
            check_is_json(sent.get("content-type", ""), sent.get("content-encoding", ""))
        return Request(
            path,
            {name: kinds[name].decode(value) for name, value in query.items()},
            self._check_headers(headers),
            checked(route.body, _body(event, route.most_bytes)) if route.body else {},
            route.body,
            principal_of(event),
        )

    @cached_property
    def _check_query(self) -> Check:
        return compiled(_parameters(self._route.required, self._route.optional), QUERY)

    @cached_property
    def _check_headers(self) -> Check:
        return compiled(_parameters({}, self._route.headers), HEADERS)


def _parameters(required: Mapping[str, JsonType[Any]], optional: Mapping[str, JsonType[Any]]) -> Schema:
    return object_schema({**required, **optional}, required)


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
