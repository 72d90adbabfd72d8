"""What a route is, and how a request becomes a call of a use case."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fanin import names
from fanin.app.api import Fanin
from fanin.domain import limits
from fanin.domain.access import AccessGroup, Principal
from fanin.domain.ids import parse_batch_id
from fanin.errors import GONE, FaninError
from fanin.wire.json_types import Json, JsonType, text, whole
from fanin.wire.shapes import Shape

if TYPE_CHECKING:  # the record of an action is imported with the first of them, and the library has no events
    from fanin.wire.actions import Result

MAX_BODY: Final = 1024 * 1024
"""Bytes of a request's body."""

MAX_MARKS_BODY: Final = limits.MAX_FAILED_MESSAGES + MAX_BODY
"""The same of a request that marks items, whose failures bring their messages."""


class HttpRequest(NamedTuple):
    """A request that has been checked.

    Attributes:
        path: parameters of the path, as text.
        query: parameters of the query that were given, as values of the types that the route names.
        key: the caller's idempotency key, if the route reads it and the request has one.
        body: JSON of the route's shape; None if it takes no body.
        shape: of the body; None if the route takes none.
        caller: who sends it; None if nobody has checked that.
    """

    path: Mapping[str, str]
    query: Mapping[str, Any]
    key: str | None
    body: Json
    shape: Shape[Any] | None
    caller: Principal | None = None

    @property
    def batch_id(self) -> int:
        """The batch in the path.

        Raises:
            InvalidRequest: it is not a batch id.
        """
        return parse_batch_id(self.path["batch_id"])


class LoggedAction(NamedTuple):
    """That a route is an action of an operator, so that the log keeps who asked for it.

    Attributes:
        result: what it did, by the value that the route answers with.
        unless: whether a request changes nothing, as a dry run does; such a request is not logged.
    """

    result: Callable[[Any], Result] = lambda _: {}
    unless: Callable[[HttpRequest], bool] = lambda _: False


class Repeat(StrEnum):
    """Whether a client may send a call again whose answer was lost.

    Attributes:
        ALWAYS: as often as it likes; where the route reads a key, under one key.
        KEYED: only if the caller gave a key, because every key costs writes.
        NEVER: it would take effect twice.
        LATE: it would do no harm, but who calls has no time to wait for it.
    """

    ALWAYS = "always"
    KEYED = "keyed"
    NEVER = "never"
    LATE = "late"


class HttpRoute(NamedTuple):
    """One row of the route table: everything that the resolver and the OpenAPI document know of a route.

    The docstring of ``act`` says what it does.

    Attributes:
        method: of HTTP.
        path: with parameters in braces.
        operation: unique name.
        act: calls the use case, and returns the value to answer with; from a ``Call`` the client is derived.
        answer: shape of the answer; None for an answer without a body.
        status: of success.
        body: shape of the body; None if the route takes none.
        named: types of the path's parameters that are not batch ids; the use case checks all of them.
        required: query parameters that must be given.
        optional: query parameters that may be given.
        keyed: whether it reads an idempotency key.
        errors: what it can raise besides the errors of every route, and of every route of a batch.
        most_bytes: of the body.
        action: of what operators call, so that each call is logged with its caller. What producers, consumers
            and other programs call as they work has none.
        group: who may call it. A route that names no group is for administrators only.
        also: other groups that may call it, since the library does so on behalf of their callers.
        location: the path of what the route has made, or of what it was added to.
        repeat: whether a client may send it again.
        slash: whether clients may also call it with a slash at the end, which makes another path for IAM.
    """

    method: str
    path: str
    operation: str
    act: Callable[[Fanin, HttpRequest], Any]
    answer: Shape[Any] | None
    status: int = 200
    body: Shape[Any] | None = None
    named: Mapping[str, JsonType[Any]] = {}
    required: Mapping[str, JsonType[Any]] = {}
    optional: Mapping[str, JsonType[Any]] = {}
    keyed: bool = False
    errors: tuple[type[FaninError], ...] = ()
    most_bytes: int = MAX_BODY
    action: LoggedAction | None = None
    group: AccessGroup = AccessGroup.ADMINISTER
    also: tuple[AccessGroup, ...] = ()
    location: Callable[[HttpRequest, Any], str] | None = None
    repeat: Repeat = Repeat.ALWAYS
    slash: bool = False

    @property
    def raises(self) -> tuple[type[FaninError], ...]:
        """What it can raise besides the errors of every route."""
        of_batch = re.search(r"\{(batch|frame)_id\}", self.path)
        return (*GONE, *self.errors) if of_batch else self.errors

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


# Routes that those may call who may read, produce, consume or operate.
reads = partial(HttpRoute, "GET", group=AccessGroup.READ)
produces = partial(HttpRoute, group=AccessGroup.PRODUCE)
consumes = partial(HttpRoute, group=AccessGroup.CONSUME)
operates = partial(HttpRoute, group=AccessGroup.OPERATE)


CURSOR: Final = text(least=1).with_keywords(description="of the page before; without one, the first page")


def batch_made(_: HttpRequest, made: Any) -> str:
    """The path of the batch that a call has opened, or has added items to."""
    return f"{names.API_ROOT}/batches/{made.batch_id}"


def paged(most: int = limits.MAX_PAGE, default: int = 100) -> dict[str, JsonType[Any]]:
    """Query parameters of a listing."""
    return {"cursor": CURSOR, "limit": whole(1, most).with_keywords(default=default)}
