"""A service over HTTPS: its methods are derived from the table of routes, where each call is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from fanin.client.https.api import NOTHING, HttpsApi, key_header, keyed
from fanin.entry.http.calls import Call
from fanin.entry.http.route import HttpRoute, Repeat
from fanin.names import API_ROOT, IDEMPOTENCY_HEADER

P = TypeVar("P")


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
        """
        route = self._routes[name]
        key, caller = given.pop("key", None), given.pop("caller", None)
        headers: dict[str, str] | None = None
        may_repeat = route.repeat is not Repeat.NEVER
        if route.repeat is Repeat.KEYED:
            headers, may_repeat = key_header(key, caller), key is not None
        elif IDEMPOTENCY_HEADER in route.headers:
            headers = keyed(key, caller)
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
