"""Redrive or cancel what a list of batches shows: one question for all, then each for itself.

The question names the batches that the page of the list has read, and counts their items. Its form carries
their ids, so what is pressed is what was asked, whatever the list shows by then.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import Response

from fanin.console.actions.action import FINAL, ConsoleAction, Effect, EffectKind, Question, in_time
from fanin.console.actions.batches import CANCEL
from fanin.console.actions.failures import REDRIVE
from fanin.console.actions.subjects import BATCH
from fanin.console.actions.words import are
from fanin.console.pages.actions import BROKEN, Asked, act, around, routes_of
from fanin.console.pages.batches import BATCHES, BULK, SIZES, BatchList, BatchQuery, listing
from fanin.console.pages.progress import Row
from fanin.console.state import CALLS, Console, console_of
from fanin.domain.batch import Batch
from fanin.domain.ids import parse_batch_id
from fanin.domain.limits import at_most, counted
from fanin.domain.redrives import Redrive

_LOG: Final = logging.getLogger(__name__)
MOST: Final = 2 * max(SIZES)
"""Batches of one press; a page of a list has fewer."""


class Affected(NamedTuple):
    """How much of a batch an action would affect.

    Attributes:
        items: how many of its items.
        exact: whether that is their number; else there may be more of a redrive, and fewer of a cancellation.
    """

    items: int
    exact: bool


class Bulk(NamedTuple):
    """What an action does on several batches.

    Attributes:
        affects: what it would affect of one; reads at most as much as the question of one does.
        bound: what stands before a number that is not exact.
        noun: what is counted, and the same of several.
    """

    affects: Callable[[Console, Row], Affected]
    bound: str
    noun: tuple[str, str]

    def number(self, found: Affected) -> str:
        """How much is affected, in words."""
        return f"{'' if found.exact else self.bound}{counted(found.items, *self.noun)}"


def _redriven(console: Console, row: Row) -> Affected:
    found = console.fanin.redrives.redrive(row.batch.batch_id, Redrive(dry_run=True))
    return Affected(found.items, found.finished)


def _given_up(_: Console, row: Row) -> Affected:
    return Affected(row.pending, row.done is not None and row.exact)


_BULK: Final[Mapping[ConsoleAction[Batch], Bulk]] = {
    REDRIVE: Bulk(_redriven, "at least ", ("message to send again", "messages to send again")),
    CANCEL: Bulk(_given_up, "at most ", ("item that is not done", "items that are not done")),
}


def _affected(console: Console, bulk: Bulk, rows: Sequence[Row]) -> list[tuple[Row, Affected]]:
    """What would be affected of those that can be counted, some at a time and not for too long."""
    found: list[tuple[Row, Affected]] = []
    for at in in_time(console.now, range(0, len(rows), CALLS)):
        found += console.each(partial(bulk.affects, console), rows[at : at + CALLS])
    return found


def _question(
    action: ConsoleAction[Batch], query: BatchQuery, listed: BatchList, console: Console
) -> Question:
    several, bulk = ("batch", "batches"), _BULK[action]
    possible = [row for row in listed.rows if not action.why_not(row.batch)]
    found = _affected(console, bulk, possible)
    left = len(possible) - len(found)
    if action is REDRIVE:
        found = [(row, one) for row, one in found if one.items or not one.exact]
    items = bulk.number(Affected(sum(one.items for _, one in found), all(one.exact for _, one in found)))
    rows, meant = counted(len(listed.rows), *several), counted(len(found), *several)
    says = [f"Of the {rows} that the list shows, {len(found):,} {are(len(found))} affected: {items}."]
    says += ["The list has further pages; what is there is not among them."] if listed.cursor else []
    says += [f"Left out, since they could not be counted in time: {counted(left, *several)}."] if left else []
    return Question(
        tuple(says),
        f"{action.title} {meant}: {items}" if found else "",
        tuple((BATCH.title(row.batch), bulk.number(one)) for row, one in found),
        FINAL if action.danger else "",
        address={**query.address(cursor=query.cursor), "id": tuple(row.batch.batch_id for row, _ in found)},
    )


_shown: Final = partial(around, kind="list of batches", segments=(BATCHES.name,))


def _page(
    request: Request, template: str, action: ConsoleAction[Batch], query: BatchQuery, **values: Any
) -> Response:
    console = console_of(request)
    back = console.templates.url(BATCHES.name, **query.address(cursor=query.cursor))
    title = "" if query.state is None else query.state.replace("_", " ")
    shown = {**_shown(request, action), "back": back, "title": title, **values}
    return console.page(request, template, **shown)


def ask(request: Request, action: ConsoleAction[Batch], asked: Asked) -> Response:
    console, query = console_of(request), BatchQuery.of(asked)
    question = _question(action, query, listing(console, query), console)
    return _page(request, "action.html", action, query, question=question, why_not="", refused="")


def press(request: Request, action: ConsoleAction[Batch], asked: Asked) -> Response:
    query = BatchQuery.of(asked)
    ids = [str(parse_batch_id(text)) for text in dict.fromkeys(asked.getlist("id"))]
    at_most("batches", ids, MOST)
    outcomes: dict[str, tuple[str, Effect]] = {}
    for name in in_time(console_of(request).now, ids):
        try:
            title, outcome, _ = act(request, BATCH, action, {"batch_id": name}, ImmutableMultiDict())
        except Exception:  # noqa: BLE001  act has logged the press; the others are done all the same
            _LOG.exception("an action on batch %s has failed", name)
            title, outcome = name, BROKEN
        outcomes[name] = title, outcome
    left = {**query.address(cursor=query.cursor), "id": ids[len(outcomes) :]}
    outcome = replace(_outcome(outcomes, len(ids)), address=left)
    return _page(request, "acted.html", action, query, outcome=outcome)


def _outcome(outcomes: Mapping[str, tuple[str, Effect]], asked: int) -> Effect:
    results = [outcome.result for _, outcome in outcomes.values()]
    changed = sum(one in {EffectKind.DONE, EffectKind.PARTLY} for one in results)
    failed, left = results.count(EffectKind.FAILED), asked - len(outcomes)
    says = f"{counted(changed, 'batch', 'batches')} of {asked:,} done"
    says += f", {failed:,} failed" if failed else ""
    says += f", {left:,} left" if left else ""
    failed_first = sorted(outcomes.items(), key=lambda one: one[1][1].result is not EffectKind.FAILED)
    lines = tuple(
        f"{name}{'' if name == title else f' ({title})'}: {outcome.says}"
        for name, (title, outcome) in failed_first
    )
    if left or (changed and failed):
        result = EffectKind.PARTLY
    else:
        result = EffectKind.FAILED if failed else EffectKind.DONE if changed else EffectKind.NOTHING
    return Effect(result, f"{says}.", lines=lines, again=f"Go on with the {left:,} left" if left else "")


ROUTES: Final = routes_of(f"/{BATCHES.name}", BULK, _shown, ask, press)
