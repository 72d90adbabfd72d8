"""Logs the actions of operators: one line for each request of a route that is one."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from fanin.app.api import Fanin
from fanin.entry.http.callers import caller_of
from fanin.entry.http.route import HttpRequest, HttpRoute
from fanin.entry.http.statuses import INTERNAL_ERROR, STATUS
from fanin.entry.observe import logger
from fanin.errors import FaninError
from fanin.wire.actions import MESSAGE, Action, ActionOutcome, Result, log_fields

_PAGING = {"cursor", "limit"}


class LoggedRequest:
    """A request for an action; leaving it as a context manager logs what became of it.

    The line has no part of the body, which may be long and hold other people's data.

    Args:
        route: an action.
        event: the request.
        path: the parameters of its path.
    """

    def __init__(self, route: HttpRoute, event: APIGatewayProxyEventV2, path: Mapping[str, str]) -> None:
        self._route = route
        self._event = event
        self._path = path
        self._result: Result = {}
        self._harmless = False

    def act(self, fanin: Fanin, request: HttpRequest) -> Any:
        """Do what the route does, and keep what it did for the log."""
        action = self._route.action
        assert action is not None  # noqa: S101 - only actions are logged
        self._harmless = action.unless(request)
        value = self._route.act(fanin, request)
        self._result = action.result(value)
        return value

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._harmless:
            logger.info(MESSAGE, extra=log_fields(self._action(error)))

    def _action(self, error: BaseException | None) -> Action:
        context = self._event.request_context
        return Action(
            action=self._route.operation,
            on={**self._path, **self._query()},
            caller=caller_of(self._event),
            outcome=ActionOutcome(self._route.status) if error is None else outcome_of(error),
            at=context.get("timeEpoch") or 0,
            result=self._result,
            group=self._route.group,
            request_id=context.get("requestId"),
        )

    def _query(self) -> dict[str, str]:
        """The parameters that say which objects are meant, or how: not which page of them."""
        known = {*self._route.required, *self._route.optional} - _PAGING
        return {n: text for n, text in self._event.query_string_parameters.items() if n in known}


def outcome_of(error: BaseException) -> ActionOutcome:
    """The outcome of a call that raised this, as its problem has it."""
    if isinstance(error, FaninError) and type(error) in STATUS:
        return ActionOutcome(STATUS[type(error)], error.code)
    return ActionOutcome(500, INTERNAL_ERROR)
