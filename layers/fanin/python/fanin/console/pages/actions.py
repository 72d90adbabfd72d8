"""The pages of actions: one asks, with numbers; the other does it, and says in numbers what was done.

The answer to a press is a page, not a redirect to one. A redirect would have to carry the outcome in a cookie
or in memory, and several processes may serve one console. To load the page again repeats the press, which is
safe: each action does the same work once, however often it is asked to.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from anyio.to_thread import run_sync
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.actions.action import Action, Outcome, Press, Result
from fanin.console.actions.log import MAX_ASKED, MAX_SAYS, Entry
from fanin.console.actions.subjects import SUBJECTS, Subject
from fanin.console.security.forms import read_form
from fanin.console.state import console_of, status_of
from fanin.entry.http.statuses import INTERNAL_ERROR
from fanin.entry.http.table import route_of
from fanin.errors import GONE, BufferNotFound, FaninError, NotRegistered, RouteNotFound
from fanin.wire.actions import Action as Record
from fanin.wire.actions import Outcome as Ended

_GONE: Final = (*GONE, BufferNotFound, NotRegistered, RouteNotFound)
"""Errors that say that there is nothing any more to do something with."""

BROKEN: Final = Outcome(
    Result.FAILED, "The console has failed. What was done before is not known; press again."
)
"""The outcome of an action that nobody has foreseen."""

_CHOICES: Final = ("error", "range", "queue", "repair", "limit")
"""Parameters that say what was chosen."""


def _ask(request: Request, subject: Subject[Any]) -> Response:
    console, action = console_of(request), _action(request, subject)
    if not console.options.write or not console.may(request, action.operation):
        return _read_only(request, subject)
    press = Press(console.fanin, console.now, request.query_params)
    found = subject.find(console.fanin, request.path_params)
    why_not = action.why_not(found)
    return console.page(
        request,
        "action.html",
        status=HTTPStatus.CONFLICT if why_not else HTTPStatus.OK,
        question=None if why_not else action.ask(press, found),
        why_not=why_not,
        title=subject.title(found),
        **_shown(request, subject, action),
    )


async def _press(request: Request, subject: Subject[Any]) -> Response:
    console, action = console_of(request), _action(request, subject)
    if not console.options.write or not console.may(request, action.operation):
        return _read_only(request, subject)
    form = await read_form(request, console.session(request))
    asked = ImmutableMultiDict([*request.query_params.multi_items(), *form.multi_items()])
    return await run_sync(partial(_done, request, subject, action, asked))


def _done(
    request: Request, subject: Subject[Any], action: Action[Any], asked: ImmutableMultiDict[str, str]
) -> Response:
    """Do it, write it into the log, and say it."""
    console, at = console_of(request), console_of(request).now()
    title, ended = _named(request, subject), Ended(HTTPStatus.OK)
    try:
        found = subject.find(console.fanin, request.path_params)
        title = subject.title(found)
        if why_not := action.why_not(found):
            outcome = Outcome(Result.NOTHING, f"Nothing was done. {why_not}")
        else:
            outcome = action.do(Press(console.fanin, console.now, asked), found)
    except FaninError as refusal:
        outcome, ended = _failure(refusal), Ended(status_of(refusal), refusal.code)
    except Exception:
        # What it had done by then nobody knows, so the log must say that it was pressed.
        ended = Ended(HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL_ERROR)
        _log(request, subject, action, asked, at=at, outcome=BROKEN, ended=ended)
        raise
    _log(request, subject, action, asked, at=at, outcome=outcome, ended=ended)
    shown = _shown(request, subject, action)
    return console.page(request, "acted.html", status=ended.status, outcome=outcome, title=title, **shown)


def _log(
    request: Request,
    subject: Subject[Any],
    action: Action[Any],
    asked: ImmutableMultiDict[str, str],
    *,
    at: int,
    outcome: Outcome,
    ended: Ended,
) -> None:
    console = console_of(request)
    keys = {name: request.path_params[name] for name in subject.keys}
    entry = Entry(
        Record(
            action.operation,
            keys,
            console.caller(request),
            ended,
            at,
            {"result": str(outcome.result), **outcome.numbers},
            group=route_of(action.operation).group,
            request_id=request.scope.get("fanin.request_id"),
        ),
        action.title,
        subject.kind,
        _named(request, subject),
        subject.segments(keys),
        outcome.result,
        outcome.says[:MAX_SAYS],
        {
            name: text[:MAX_ASKED]
            for name in _CHOICES
            if (text := ", ".join(filter(None, asked.getlist(name))))
        },
    )
    console.log.add(entry)


def _named(request: Request, subject: Subject[Any]) -> str:
    """The id or name that an address gives."""
    return "/".join(request.path_params[name] for name in subject.keys)


def _failure(error: FaninError) -> Outcome:
    says = str(error)
    if isinstance(error, _GONE):
        return Outcome(Result.NOTHING, f"Nothing was done: {says.rstrip('.')}.", gone=True)
    if error.retryable:
        says += ". It is safe to press again: nothing is done twice"
    return Outcome(Result.FAILED, f"{says[:1].upper()}{says[1:].rstrip('.')}.")


def _action(request: Request, subject: Subject[Any]) -> Action[Any]:
    found = subject.actions.get(request.path_params["action"])
    if found is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return found


def _read_only(request: Request, subject: Subject[Any]) -> Response:
    return console_of(request).page(
        request,
        "read_only.html",
        status=HTTPStatus.FORBIDDEN,
        here=subject.place,
        back=subject.segments(request.path_params),
    )


def _shown(request: Request, subject: Subject[Any], action: Action[Any]) -> Mapping[str, Any]:
    back = subject.segments(request.path_params)
    return {
        "here": subject.place,
        "subject": subject,
        "action": action,
        "back": back,
        "target": (*back, "actions", action.name),
    }


def _routes(subject: Subject[Any]) -> tuple[Route, Route]:
    path = "".join(f"/{{{name}}}" for name in subject.keys)
    path = f"/{subject.place}{path}/actions/{{action}}"

    def ask(request: Request) -> Response:
        return _ask(request, subject)

    async def press(request: Request) -> Response:
        return await _press(request, subject)

    return Route(path, ask), Route(path, press, methods=["POST"])


ROUTES: Final = tuple(route for subject in SUBJECTS for route in _routes(subject))
