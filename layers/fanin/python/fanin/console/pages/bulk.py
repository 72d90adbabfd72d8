"""Redrive or cancel what a list of batches shows: one question for all, then each for itself.

The question names the batches that the page of the list has read, and counts their items. Its form carries
their ids, so what is pressed is what was asked, whatever the list shows by then.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from anyio.to_thread import run_sync
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.actions.action import TIME_MS, ConsoleAction, Effect, EffectKind, Question
from fanin.console.actions.batches import CANCEL
from fanin.console.actions.failures import REDRIVE
from fanin.console.actions.subjects import BATCH
from fanin.console.actions.words import are
from fanin.console.pages.actions import BROKEN, act, action_in, pressed, read_only
from fanin.console.pages.batches import BATCHES, SIZES, BatchList, BatchQuery, listing
from fanin.console.pages.progress import Row
from fanin.console.state import CALLS, Console, Unreadable, console_of
from fanin.domain.batch import Batch
from fanin.domain.ids import parse_batch_id
from fanin.domain.limits import at_most, counted
from fanin.domain.redrives import Redrive

_LOG: Final = logging.getLogger(__name__)
MOST: Final = 2 * max(SIZES)
"""Batches of one press; a page of a list has fewer."""


class Affected(NamedTuple):
    """A batch that the question is about.

    Attributes:
        batch: its row.
        items: how many of its items are affected.
        exact: whether that is their number; else there may be more of a redrive, and fewer of a cancellation.
    """

    batch: Batch
    items: int
    exact: bool


class Bulk(NamedTuple):
    """An action on several batches.

    Attributes:
        action: on each.
        affects: what it would affect of one; reads at most as much as the question of one does.
        bound: what stands before a number that is not exact.
        noun: what is counted, and the same of several.
    """

    action: ConsoleAction[Batch]
    affects: Callable[[Console, Row], Affected]
    bound: str
    noun: tuple[str, str]


def _redriven(console: Console, row: Row) -> Affected:
    found = console.fanin.redrives.redrive(row.batch.batch_id, Redrive(dry_run=True))
    return Affected(row.batch, found.items, found.finished)


def _given_up(_: Console, row: Row) -> Affected:
    return Affected(row.batch, row.pending, row.done is not None and row.exact)


ACTIONS: Final[Mapping[str, Bulk]] = {
    one.action.name: one
    for one in (
        Bulk(REDRIVE, _redriven, "at least ", ("message to send again", "messages to send again")),
        Bulk(CANCEL, _given_up, "at most ", ("item that is not done", "items that are not done")),
    )
}


def _affected(console: Console, bulk: Bulk, rows: Sequence[Row]) -> list[Affected]:
    """What would be affected of those that can be counted, some at a time and not for too long."""
    found: list[Affected] = []
    until = console.now() + TIME_MS
    for at in range(0, len(rows), CALLS):
        if at and console.now() >= until:
            break
        answers = console.each(partial(bulk.affects, console), rows[at : at + CALLS])
        found += [one for one in answers if not isinstance(one, Unreadable)]
    return found


def _question(bulk: Bulk, shown: BatchList, found: Sequence[Affected], left: int) -> Question:
    if bulk.action is REDRIVE:
        found = [one for one in found if one.items or not one.exact]
    several = ("batch", "batches")
    items = _number(bulk, sum(one.items for one in found), exact=all(one.exact for one in found))
    listed, meant = counted(len(shown.rows), *several), counted(len(found), *several)
    says = [f"Of the {listed} that the list shows, {len(found):,} {are(len(found))} affected: {items}."]
    says += ["The list has further pages; what is there is not among them."] if shown.cursor else []
    says += [f"Left out, since they could not be counted in time: {counted(left, *several)}."] if left else []
    facts = tuple(
        (one.batch.user_key or str(one.batch.batch_id), _number(bulk, one.items, exact=one.exact))
        for one in found
    )
    act = f"{bulk.action.title} {meant}: {items}"
    warning = "This cannot be undone." if bulk.action.danger else ""
    ids = tuple(one.batch.batch_id for one in found)
    return Question(tuple(says), act if found else "", facts, warning, address={"id": ids})


def _number(bulk: Bulk, items: int, *, exact: bool) -> str:
    return f"{'' if exact else bulk.bound}{counted(items, *bulk.noun)}"


def _asked(request: Request) -> tuple[Bulk, Response | None]:
    """The action that is asked for, and the answer where the caller may not do it."""
    bulk = action_in(request, ACTIONS)
    back = console_of(request).templates.url(BATCHES.name)
    return bulk, read_only(request, bulk.action, BATCHES.name, back)


def _shown(console: Console, bulk: Bulk, query: BatchQuery) -> Mapping[str, Any]:
    return {
        "here": BATCHES.name,
        "kind": "list of batches",
        "place": BATCHES.name,
        "title": "" if query.state is None else query.state.replace("_", " "),
        "action": bulk.action,
        "back": console.templates.url(BATCHES.name, **query.address(cursor=query.cursor)),
        "target": (BATCHES.name, "actions", bulk.action.name),
    }


def ask(request: Request) -> Response:
    console, (bulk, refused) = console_of(request), _asked(request)
    if refused:
        return refused
    query = BatchQuery.of(request.query_params)
    shown = listing(console, query)
    possible = [row for row in shown.rows if not bulk.action.why_not(row.batch)]
    found = _affected(console, bulk, possible)
    question = _question(bulk, shown, found, len(possible) - len(found))
    kept = {**query.address(cursor=query.cursor), **question.address}
    shown_of = _shown(console, bulk, query)
    asks = replace(question, address=kept)
    return console.page(request, "action.html", question=asks, why_not="", refused="", **shown_of)


async def press(request: Request) -> Response:
    bulk, refused = _asked(request)
    if refused:
        return refused
    return await run_sync(partial(_done, request, bulk, await pressed(request)))


def _done(request: Request, bulk: Bulk, asked: ImmutableMultiDict[str, str]) -> Response:
    console, query = console_of(request), BatchQuery.of(asked)
    ids = [parse_batch_id(text) for text in dict.fromkeys(asked.getlist("id"))]
    at_most("batches", ids, MOST)
    until = console.now() + TIME_MS
    outcomes: list[tuple[str, Effect]] = []
    while len(outcomes) < len(ids) and (not outcomes or console.now() < until):
        name = str(ids[len(outcomes)])
        try:
            title, outcome, _ = act(request, BATCH, bulk.action, {"batch_id": name}, ImmutableMultiDict())
        except Exception:  # noqa: BLE001  act has logged the press; the others are done all the same
            _LOG.exception("an action on batch %s has failed", name)
            title, outcome = name, BROKEN
        outcomes.append((title, outcome))
    left = {**query.address(cursor=query.cursor), "id": ids[len(outcomes) :]}
    outcome = replace(_outcome(outcomes, [str(one) for one in ids]), address=left)
    return console.page(request, "acted.html", outcome=outcome, **_shown(console, bulk, query))


def _outcome(outcomes: Sequence[tuple[str, Effect]], ids: Sequence[str]) -> Effect:
    results = [outcome.result for _, outcome in outcomes]
    changed = sum(one in {EffectKind.DONE, EffectKind.PARTLY} for one in results)
    failed, left = results.count(EffectKind.FAILED), len(ids) - len(outcomes)
    says = f"{counted(changed, 'batch', 'batches')} of {len(ids):,} done"
    says += f", {failed:,} failed" if failed else ""
    says += f", {left:,} left" if left else ""
    order = sorted(
        zip(ids, outcomes, strict=False), key=lambda one: one[1][1].result is not EffectKind.FAILED
    )
    lines = tuple(
        f"{name}{'' if name == title else f' ({title})'}: {outcome.says}" for name, (title, outcome) in order
    )
    if left or (changed and failed):
        result = EffectKind.PARTLY
    else:
        result = EffectKind.FAILED if failed else EffectKind.DONE if changed else EffectKind.NOTHING
    return Effect(result, f"{says}.", lines=lines, again=f"Go on with the {left:,} left" if left else "")


ROUTES: Final = (
    Route("/batches/actions/{action}", ask),
    Route("/batches/actions/{action}", press, methods=["POST"]),
)
