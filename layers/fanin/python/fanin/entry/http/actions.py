"""Logs the actions of operators: one line for each request of a route that is one."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from fanin.app.api import Fanin
from fanin.entry.http.callers import caller_of
from fanin.entry.http.route import HttpRequest, HttpRoute, LoggedAction
from fanin.entry.observe import logger
from fanin.errors import INTERNAL_ERROR, STATUS, FaninError
from fanin.wire.actions import MESSAGE, Action, ActionOutcome, Result, log_fields

_PAGING = {"cursor", "limit"}


@contextmanager
def logged(
    route: HttpRoute, event: APIGatewayProxyEventV2, path: Mapping[str, str]
) -> Iterator[Callable[[Fanin, HttpRequest], Any]]:
    """Do what the route of an action does, by the call that this gives, and log what became of it.

    The line has no part of the body, which may be long and hold other people's data.

    Args:
        route: an action.
        event: the request.
        path: the parameters of its path.
    """
    action, context = route.action or LoggedAction(), event.request_context
    result: Result = {}
    harmless = False

    def act(fanin: Fanin, request: HttpRequest) -> Any:
        nonlocal result, harmless
        harmless = action.unless(request)
        value = route.act(fanin, request)
        result = action.result(value)
        return value

    outcome = ActionOutcome(route.status)
    try:
        yield act
    except BaseException as error:
        outcome = outcome_of(error)
        raise
    finally:
        if not harmless:
            on, at = {**path, **_query(route, event)}, context.get("timeEpoch") or 0
            who, request_id = caller_of(event), context.get("requestId")
            line = Action(route.operation, on, who, outcome, at, result, route.group, request_id)
            logger.info(MESSAGE, extra=log_fields(line))


def _query(route: HttpRoute, event: APIGatewayProxyEventV2) -> dict[str, str]:
    """The parameters that say which objects are meant, or how: not which page of them."""
    known = {*route.required, *route.optional} - _PAGING
    return {name: text for name, text in event.query_string_parameters.items() if name in known}


def outcome_of(error: BaseException) -> ActionOutcome:
    """The outcome of a call that raised this, as its problem has it."""
    if isinstance(error, FaninError) and type(error) in STATUS:
        return ActionOutcome(STATUS[type(error)], error.code)
    return ActionOutcome(500, INTERNAL_ERROR)
