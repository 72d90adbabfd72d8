"""A route that is the call of a service: how its arguments stand in a request, in both directions.

The service reads a request into the arguments, and the library writes the arguments into a request. So a call
is declared once, in the table of routes; its types are those of the Protocol whose method it is.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from fanin.domain import limits
from fanin.domain.ids import MAX_ITEMS, parse_batch_id
from fanin.errors import InvalidRequest

if TYPE_CHECKING:
    from fanin.app.api import Fanin
    from fanin.entry.http.route import HttpRequest, HttpRoute
    from fanin.wire.json_types import Json


_LONGEST: Final = 8_192
"""Characters of a parameter in a path or query: more than any that the service takes."""


class Asked(NamedTuple):
    """What a call asks for: the path, percent-encoded; its query; and the body, if the route takes one."""

    path: str
    query: dict[str, str]
    body: Json | None


class Call:
    """The call of a service.

    Args:
        method: of the Protocol of the service, such as ``Ledger.open``.
        body: the parameters that the body has. One is the value that the body stands for; several are its
            fields, or the attributes of that value. The others are in the path and in the query.
    """

    def __init__(self, method: Callable[..., Any], *body: str) -> None:
        self.method = method
        self.body = body
        protocol, _, self.name = method.__qualname__.partition(".")
        self.service = protocol.lower()

    @cached_property
    def signature(self) -> inspect.Signature:
        """Of the method, without ``self``."""
        found = inspect.signature(self.method)
        return found.replace(parameters=list(found.parameters.values())[1:])

    def __call__(self, fanin: Fanin, request: HttpRequest) -> Any:
        """Make the call that a request asks for."""
        known = self.signature.parameters
        path = {name: _IN_PATH.get(name, str)(text) for name, text in request.path.items()}
        given = {**request.query, **{name: value for name, value in path.items() if name in known}}
        if request.shape is not None:
            outside = {name: part for name, part in path.items() if name not in known}
            given |= self._arguments(request.shape.decode(request.body, **outside))
        if "key" in known:
            given |= {"key": request.key, "caller": request.caller}
        return getattr(getattr(fanin, self.service), self.name)(**given)

    def _arguments(self, value: Any) -> Mapping[str, Any]:
        if isinstance(value, dict):
            return value
        if len(self.body) == 1:
            return {self.body[0]: value}
        return {name: getattr(value, name) for name in self.body}

    def asked(self, route: HttpRoute, given: Mapping[str, Any]) -> Asked:
        """Write the arguments of a call into a request of its route.

        Args:
            route: that the call is.
            given: all arguments but the key and the caller.
        """
        body: Json | None = None
        sent = {name: given[name] for name in self.body}
        value = next(iter(sent.values())) if len(sent) == 1 else SimpleNamespace(**sent)
        if route.body is not None and route.body.encode is dict:
            body = {name: part for name, part in sent.items() if part is not None}
        elif route.body is not None:
            body = {} if value is None else route.body.encode(value)

        def part(match: re.Match[str]) -> str:
            name = match[1]
            return segment(name, given[name] if name in given else getattr(value, name))

        query: dict[str, str] = {}
        for name, kind in {**route.required, **route.optional}.items():
            argument, known = given.get(name), self.signature.parameters[name]
            by_default = isinstance(argument, bool | Enum) and argument is known.default
            if argument is not None and not by_default and (encoded := kind.encode(argument)) is not None:
                text = str(encoded).lower() if isinstance(encoded, bool) else str(encoded)
                query[name] = limits.text(name, text, _LONGEST)
        return Asked(re.sub(r"\{(\w+)\}", part, route.path), query, body)


def segment(name: str, value: Any) -> str:
    """A parameter as a part of a path, percent-encoded.

    Raises:
        InvalidRequest: it cannot be one, so there is nothing of that name.
    """
    text = limits.text(name, str(value), _LONGEST, least=1)
    if not text.strip(".") or {*"/?"} & {*text}:
        raise InvalidRequest(f"{name} must not have / or ?, nor only dots; it is {limits.shown(text)}")
    return quote(text, safe="")


def _ordinal(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > len(str(MAX_ITEMS)):
        raise InvalidRequest(
            f"{text[:32]!r} is not the ordinal of an item; `failures` lists the ordinals of failed items"
        )
    return int(text)


_IN_PATH: Final[Mapping[str, Callable[[str], Any]]] = {
    "batch_id": parse_batch_id,
    "frame_id": parse_batch_id,
    "ordinal": _ordinal,
}
"""How parameters of paths are read that are not text."""
