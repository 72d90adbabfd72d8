"""The pages of actions: one asks, with numbers; the other does it, and says in numbers what was done.

The answer to a press is a page, not a redirect to one. A redirect would have to carry the outcome in a cookie
or in memory, and several processes may serve one console. To load the page again repeats the press, which is
safe: each action does the same work once, however often it is asked to. Only a deadline that is typed as a
duration counts from each press anew, and the page of the action says so.
"""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from anyio.to_thread import run_sync
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.actions.action import ConsoleAction, Effect, EffectKind, Press, Segments, nothing
from fanin.console.actions.batches import TYPED
from fanin.console.actions.log import KEPT, MAX_ASKED, MAX_SAYS, LogEntry
from fanin.console.actions.subjects import SUBJECTS, Subject
from fanin.console.guard import read_form
from fanin.console.state import console_of, status_of
from fanin.entry.http.table import route_of
from fanin.errors import INTERNAL_ERROR, FaninError, InvalidRequest
from fanin.wire.actions import Action, ActionOutcome, Result

Asked: TypeAlias = ImmutableMultiDict[str, str]
"""Parameters of the address of an action, and fields of its form."""
_GONE: Final = {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}
"""Status of errors that say that there is nothing any more to do something with."""

BROKEN: Final = Effect(
    EffectKind.FAILED, "The console has failed. What was done before is not known; press again."
)
"""The outcome of an action that nobody has foreseen."""

_CHOICES: Final = ("error", "range", "queue", "repair", "limit", *TYPED)
"""Parameters that say what was chosen."""


Answer: TypeAlias = Callable[[Request, ConsoleAction[Any], Asked], Response]


def routes_of(
    path: str,
    actions: Sequence[ConsoleAction[Any]],
    shown: Callable[[Request, ConsoleAction[Any]], Mapping[str, Any]],
    ask: Answer,
    press: Answer,
) -> tuple[Route, Route]:
    """The routes of the actions on something.

    Args:
        path: of its page.
        actions: that are possible on such things.
        shown: what all pages of an action show.
        ask: answers with the question.
        press: does it, and answers with what was done; blocking.
    """

    def allowed(request: Request) -> tuple[ConsoleAction[Any], Response | None]:
        """The action that an address names; and a page that leads back if the caller has no buttons."""
        named = [one for one in actions if one.name == request.path_params["action"]]
        if not named:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        console = console_of(request)
        if console.options.write and console.may(request, named[0].operation):
            return named[0], None
        status, values = HTTPStatus.FORBIDDEN, shown(request, named[0])
        return named[0], console.page(request, "read_only.html", status=status, **values)

    def asked(request: Request) -> Response:
        action, refused = allowed(request)
        return refused or ask(request, action, request.query_params)

    async def pressed(request: Request) -> Response:
        action, refused = allowed(request)
        if refused:
            return refused
        form = await read_form(request, console_of(request).session(request))
        given = ImmutableMultiDict([*request.query_params.multi_items(), *form.multi_items()])
        return await run_sync(press, request, action, given)

    path = f"{path}/actions/{{action}}"
    return Route(path, asked), Route(path, pressed, methods=["POST"])


def around(request: Request, action: ConsoleAction[Any], kind: str, segments: Segments) -> dict[str, Any]:
    """What all pages of an action show.

    Args:
        request: what is answered.
        action: of what the page is about.
        kind: of the thing.
        segments: path of its page.
    """
    return {
        "here": segments[0],
        "kind": kind,
        "action": action,
        "back": console_of(request).templates.url(*segments),
        "target": (*segments, "actions", action.name),
    }


def _routes(subject: Subject[Any]) -> tuple[Route, Route]:
    def shown(request: Request, action: ConsoleAction[Any]) -> Mapping[str, Any]:
        return around(request, action, subject.kind, subject.segments(request.path_params))

    def ask(request: Request, action: ConsoleAction[Any], asked: Asked, refused: str = "") -> Response:
        """Ask, with the form as it was filled in, and why that was refused."""
        console = console_of(request)
        found = subject.find(console.fanin, request.path_params)
        why_not = action.why_not(found)
        return console.page(
            request,
            "action.html",
            status=HTTPStatus.CONFLICT if why_not else HTTPStatus.BAD_REQUEST if refused else HTTPStatus.OK,
            question=None if why_not else action.ask(Press(console.fanin, console.now, asked), found),
            why_not=why_not,
            refused=refused,
            title=subject.title(found),
            **shown(request, action),
        )

    def press(request: Request, action: ConsoleAction[Any], asked: Asked) -> Response:
        """Do it, and say it."""
        title, outcome, ended = act(request, subject, action, request.path_params, asked)
        if action.typed and ended.code == InvalidRequest.code:
            return ask(request, action, asked, outcome.says)
        return console_of(request).page(
            request, "acted.html", status=ended.status, outcome=outcome, title=title, **shown(request, action)
        )

    path = "".join(f"/{{{name}}}" for name in subject.keys)
    return routes_of(f"/{subject.place}{path}", subject.actions, shown, ask, press)


def act(
    request: Request,
    subject: Subject[Any],
    action: ConsoleAction[Any],
    given: Mapping[str, str],
    asked: Asked,
) -> tuple[str, Effect, ActionOutcome]:
    """Do it, and write it into the log.

    Args:
        request: the press.
        subject: the kind of thing.
        action: on one.
        given: parameters of a path, which say on which one.
        asked: what was chosen.

    Returns:
        What a page calls the thing, what became of it, and the status.
    """
    console, at = console_of(request), console_of(request).now()
    keys = {name: given[name] for name in subject.keys}
    title = named = "/".join(keys.values())
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
        operation, caller = action.operation, console.caller(request)
        result: Result = {"result": str(outcome.result), **outcome.numbers}
        group, request_id = route_of(operation).group, request.scope.get("fanin.request_id")
        record = Action(operation, keys, caller, ended, at, result, group, request_id)
        texts = {name: ", ".join(filter(None, asked.getlist(name))) for name in _CHOICES}
        chosen = {name: text[:MAX_ASKED] for name, text in texts.items() if text}
        of = (action.title, subject.kind, named, subject.segments(keys))
        console.log.add(LogEntry(record, *of, outcome.result, outcome.says[:MAX_SAYS], chosen))
    return title, outcome, ended


def _failure(error: FaninError) -> Effect:
    says = str(error)
    if error.status in _GONE:
        return nothing(f"Nothing was done: {says.rstrip('.')}.", gone=True)
    if error.retryable:
        says += ". It is safe to press again: nothing is done twice"
    return Effect(EffectKind.FAILED, f"{says[:1].upper()}{says[1:].rstrip('.')}.")


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
