"""The pages of actions: one asks, with numbers; the other does it, and says in numbers what was done.

The answer to a press is a page, not a redirect to one. A redirect would have to carry the outcome in a cookie
or in memory, and several processes may serve one console. To load the page again repeats the press, which is
safe: each action does the same work once, however often it is asked to. Only a deadline that is typed as a
duration counts from each press anew, and the page of the action says so.
"""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar

from anyio.to_thread import run_sync
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.actions.action import ConsoleAction, Effect, EffectKind, Press, nothing
from fanin.console.actions.batches import TYPED
from fanin.console.actions.log import KEPT, MAX_ASKED, MAX_SAYS, LogEntry
from fanin.console.actions.subjects import SUBJECTS, Subject
from fanin.console.sessions import read_form
from fanin.console.state import console_of, status_of
from fanin.entry.http.table import route_of
from fanin.errors import (
    GONE,
    INTERNAL_ERROR,
    BufferNotFound,
    FaninError,
    InvalidRequest,
    NotRegistered,
    RouteNotFound,
)
from fanin.wire.actions import Action, ActionOutcome

T = TypeVar("T")
_GONE: Final = (*GONE, BufferNotFound, NotRegistered, RouteNotFound)
"""Errors that say that there is nothing any more to do something with."""

BROKEN: Final = Effect(
    EffectKind.FAILED, "The console has failed. What was done before is not known; press again."
)
"""The outcome of an action that nobody has foreseen."""

_CHOICES: Final = ("error", "range", "queue", "repair", "limit", *TYPED)
"""Parameters that say what was chosen."""


def _ask(request: Request, subject: Subject[Any]) -> Response:
    action = action_in(request, subject.actions)
    refused = read_only(request, action, subject.place, _back(request, subject))
    return refused or _question(request, subject, action, request.query_params)


def _question(
    request: Request,
    subject: Subject[Any],
    action: ConsoleAction[Any],
    asked: ImmutableMultiDict[str, str],
    *,
    refused: str = "",
    status: int = HTTPStatus.OK,
) -> Response:
    """Ask, with the form as it was filled in, and why that was refused."""
    console = console_of(request)
    found = subject.find(console.fanin, request.path_params)
    why_not = action.why_not(found)
    return console.page(
        request,
        "action.html",
        status=HTTPStatus.CONFLICT if why_not else status,
        question=None if why_not else action.ask(Press(console.fanin, console.now, asked), found),
        why_not=why_not,
        refused=refused,
        title=subject.title(found),
        **_shown(request, subject, action),
    )


async def _press(request: Request, subject: Subject[Any]) -> Response:
    action = action_in(request, subject.actions)
    if refused := read_only(request, action, subject.place, _back(request, subject)):
        return refused
    return await run_sync(partial(_done, request, subject, action, await pressed(request)))


async def pressed(request: Request) -> ImmutableMultiDict[str, str]:
    """What the address of a press and its form say, once the form is known to be of a page of the session."""
    form = await read_form(request, console_of(request).session(request))
    return ImmutableMultiDict([*request.query_params.multi_items(), *form.multi_items()])


def _done(
    request: Request, subject: Subject[Any], action: ConsoleAction[Any], asked: ImmutableMultiDict[str, str]
) -> Response:
    """Do it, and say it."""
    title, outcome, ended = act(request, subject, action, request.path_params, asked)
    if action.typed and ended.code == InvalidRequest.code:
        return _question(request, subject, action, asked, refused=outcome.says, status=ended.status)
    shown = _shown(request, subject, action)
    return console_of(request).page(
        request, "acted.html", status=ended.status, outcome=outcome, title=title, **shown
    )


def act(
    request: Request,
    subject: Subject[Any],
    action: ConsoleAction[Any],
    keys: Mapping[str, str],
    asked: ImmutableMultiDict[str, str],
) -> tuple[str, Effect, ActionOutcome]:
    """Do it, and write it into the log.

    Args:
        request: the press.
        subject: the kind of thing.
        action: on one.
        keys: which one.
        asked: what was chosen.

    Returns:
        What a page calls the thing, what became of it, and the status.
    """
    console, at = console_of(request), console_of(request).now()
    title = _named(subject, keys)
    # After an error that nobody has foreseen, what was done is not known, so the log must say it was pressed.
    outcome, ended = BROKEN, ActionOutcome(HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL_ERROR)
    try:
        found = subject.find(console.fanin, keys)
        title = subject.title(found)
        if why_not := action.why_not(found):
            outcome = nothing(f"Nothing was done. {why_not}")
        else:
            outcome = action.do(Press(console.fanin, console.now, asked), found)
        ended = ActionOutcome(HTTPStatus.OK)
    except FaninError as refusal:
        outcome, ended = _failure(refusal), ActionOutcome(status_of(refusal), refusal.code)
    finally:
        _log(request, subject, action, keys, asked, at=at, outcome=outcome, ended=ended)
    return title, outcome, ended


def _log(
    request: Request,
    subject: Subject[Any],
    action: ConsoleAction[Any],
    given: Mapping[str, str],
    asked: ImmutableMultiDict[str, str],
    *,
    at: int,
    outcome: Effect,
    ended: ActionOutcome,
) -> None:
    console = console_of(request)
    keys = {name: given[name] for name in subject.keys}
    entry = LogEntry(
        Action(
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
        _named(subject, keys),
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


def _named(subject: Subject[Any], keys: Mapping[str, str]) -> str:
    """The id or name that an address gives."""
    return "/".join(keys[name] for name in subject.keys)


def _failure(error: FaninError) -> Effect:
    says = str(error)
    if isinstance(error, _GONE):
        return nothing(f"Nothing was done: {says.rstrip('.')}.", gone=True)
    if error.retryable:
        says += ". It is safe to press again: nothing is done twice"
    return Effect(EffectKind.FAILED, f"{says[:1].upper()}{says[1:].rstrip('.')}.")


def action_in(request: Request, actions: Mapping[str, T]) -> T:
    """The action that an address names."""
    found = actions.get(request.path_params["action"])
    if found is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return found


def read_only(request: Request, action: ConsoleAction[Any], here: str, back: str) -> Response | None:
    """A page that leads back to an address, since the caller has no buttons; None if there is this one."""
    console = console_of(request)
    if console.options.write and console.may(request, action.operation):
        return None
    return console.page(request, "read_only.html", status=HTTPStatus.FORBIDDEN, here=here, back=back)


def _back(request: Request, subject: Subject[Any]) -> str:
    return console_of(request).templates.url(*subject.segments(request.path_params))


def _shown(request: Request, subject: Subject[Any], action: ConsoleAction[Any]) -> Mapping[str, Any]:
    return {
        "here": subject.place,
        "kind": subject.kind,
        "place": subject.place,
        "action": action,
        "back": _back(request, subject),
        "target": (*subject.segments(request.path_params), "actions", action.name),
    }


def _routes(subject: Subject[Any]) -> tuple[Route, Route]:
    path = "".join(f"/{{{name}}}" for name in subject.keys)
    path = f"/{subject.place}{path}/actions/{{action}}"

    def ask(request: Request) -> Response:
        return _ask(request, subject)

    async def press(request: Request) -> Response:
        return await _press(request, subject)

    return Route(path, ask), Route(path, press, methods=["POST"])


PAGE: Final = 25
"""Entries of a page, which keeps it under 100 KB whatever their texts are."""


def log(request: Request) -> Response:
    console = console_of(request)
    entries = console.log.entries()
    after = request.query_params.get("after", "")
    first = int(after) if after.isascii() and after.isdigit() and len(after) <= len(str(KEPT)) else 0
    stop = first + PAGE
    return console.page(
        request,
        "log.html",
        here="log",
        entries=entries[first:stop],
        after=stop if stop < len(entries) else None,
        kept=KEPT,
    )


ROUTES: Final = (*(route for subject in SUBJECTS for route in _routes(subject)), Route("/log", log))
