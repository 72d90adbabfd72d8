"""Actions on the failed items of a batch: send them again, or give up those that are held; which of them."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote

from starlette.datastructures import ImmutableMultiDict

from fanin.console.actions import action
from fanin.console.actions.action import ConsoleAction, Effect, EffectKind, Field, Press, Question, Segments
from fanin.console.actions.words import are, state_of, was
from fanin.domain.batch import Batch, Kind, Mode
from fanin.domain.limits import MAX_CHANNEL, MAX_PAGE, counted
from fanin.domain.redrives import OrdinalRange, Redrive, Redriving, Selection
from fanin.errors import InvalidRequest

_THOUSANDS: Final = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])", re.ASCII)
"""One number as pages show it, or two: nobody should find out by sending the wrong messages."""
_RANGE: Final = re.compile(r"(\d{1,16})(?:\s*\.\.\s*(\d{1,16}))?", re.ASCII)
MAX_TEXT: Final = 4_000
"""Characters of ranges that can be typed."""
NAMED_ERRORS: Final = 5
MAX_SHOWN: Final = 256
"""How many errors a sentence names, and how many characters of each."""


def selection_of(asked: ImmutableMultiDict[str, str]) -> Selection:
    """Read a selection from the parameters ``error``, ``quoted`` and ``range``, each any number of times.

    ``quoted`` is an error that is percent-encoded once more: a field of a form loses its line ends otherwise.
    A range is ``A..B``, where B is one past the last, or one ordinal; several can stand in one parameter.

    Raises:
        InvalidRequest: a range is malformed, or the selection is.
        RequestTooLarge: there are too many errors or ranges.
    """
    errors = (*asked.getlist("error"), *map(unquote, asked.getlist("quoted")))
    ranges = tuple(one for text in asked.getlist("range") for one in _ranges(text))
    chosen = Selection(errors, ranges)
    chosen.check()
    return chosen


def address_of(chosen: Selection) -> dict[str, object]:
    """The parameters that ``selection_of`` reads."""
    return {"error": tuple(chosen.errors), "range": tuple(map(_written, chosen.ranges))}


def fields_of(chosen: Selection) -> tuple[Field, ...]:
    """The fields of a form that asks again for other ranges."""
    kept = tuple(Field("quoted", value=quote(error, safe=""), kind="hidden") for error in chosen.errors)
    written = ", ".join(map(_written, chosen.ranges))
    return (*kept, Field("range", "Items", written, hint="all; or such as 0..100, 250", most=MAX_TEXT))


def queue_field(queue: str) -> Field:
    """The field for the queue to send to."""
    return Field("queue", "Queue", queue, hint="its own; or a URL or an ARN", most=MAX_CHANNEL)


def described(chosen: Selection) -> str:
    """Which failures are meant, in a sentence; empty if all are."""
    parts = []
    if chosen.errors:
        named = [f"\u201c{_short(one)}\u201d" for one in chosen.errors[:NAMED_ERRORS]]
        if more := len(chosen.errors[NAMED_ERRORS:]):
            named.append(f"one of {more:,} more")
        parts.append("whose error begins with " + " or ".join(named))
    if chosen.ranges:
        parts.append("of the items " + ", ".join(map(_written, chosen.ranges)))
    return f"Only failures {' and '.join(parts)}." if parts else ""


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\u2026"


def _ranges(text: str) -> Iterator[OrdinalRange]:
    if found := _THOUSANDS.search(text):
        raise InvalidRequest(
            f"{found[0]!r} can be read as one number or as two; write numbers without commas, and a space"
            " after the comma between two of them"
        )
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise InvalidRequest(
                f"{part[:32]!r} is not a range of items; write one number, or A..B, where B is one past the"
                " last"
            )
        start = int(found[1])
        yield OrdinalRange(start, start + 1 if found[2] is None else int(found[2]))


def _written(one: OrdinalRange) -> str:
    return f"{one.start}..{one.stop}"


NAMED: Final = 5
"""Batches with redriven items that an outcome links to."""


class RedriveFailures(ConsoleAction[Batch]):
    name, operation, title, hint = "redrive", "redriveBatch", "Redrive", "Send failed messages again"

    def why_not(self, batch: Batch) -> str:
        if batch.kind is not Kind.BATCH:
            return (
                f"The messages of a {batch.kind} mean nothing in another batch: start another {batch.kind}."
            )
        if not batch.state.terminal and (not batch.holds or batch.mode is Mode.ESTIMATED):
            return "Failures can be sent again when the batch has ended: it does not hold failed items."
        if batch.held or batch.may_hold_more:
            return ""
        if not batch.state.terminal:
            return "No item is held."
        return "" if batch.failed or batch.failed_more else "No item has failed."

    def ask(self, press: Press, batch: Batch) -> Question:
        request = _request(press, dry_run=True)
        found, queue = press.fanin.redrives.redrive(batch.batch_id, request), request.queue_url
        least = "" if found.finished else "at least "
        says, messages = [described(request)], counted(found.items, "message")
        if found.items:
            where = f"to {queue}" if queue else "to the queue that it came from"
            says.append(f"{least.capitalize()}{messages} {are(found.items)} sent again, each {where}.")
            says.append(
                "They become the items of a new batch, which names this one as the one that it retries."
                if batch.state.terminal
                else "They keep their items, and this batch goes on waiting for them."
            )
            if not found.finished:
                says.append("Counting took too long to finish: all that match are sent, in the background.")
        else:
            says.append(_none(found))
        return Question(
            tuple(filter(None, says)),
            f"Send {least}{messages} again" if found.items else "",
            (("To send", f"{found.items:,}"), *_left(found)),
            narrowing=(*fields_of(request), queue_field(queue or "")),
            address={**address_of(request), "queue": queue},
        )

    def do(self, press: Press, batch: Batch) -> Effect:
        found = press.fanin.redrives.redrive(batch.batch_id, _request(press, dry_run=False))
        refused = sum(found.refused.values())
        left, kind = found.not_kept + refused, EffectKind.PARTLY
        numbers = {"items": found.items, "already": found.already}
        numbers |= {"not_kept": found.not_kept, "refused": refused}
        numbers |= {} if found.batch_id is None else {"batch_id": found.batch_id}
        says = f"{counted(found.items, 'message')} sent again."
        if not found.finished:
            says = (
                f"{counted(found.items, 'message')} sent so far; the service goes on with the rest by itself."
            )
        elif not found.items:
            kind, says = EffectKind.NOTHING, f"Nothing was sent. {_none(found)}"
        elif left:
            says += f" {counted(left, 'failure')} could not be sent, and {are(left)} as before."
        else:
            kind = EffectKind.DONE
        facts = (("Sent", f"{found.items:,}"), *_left(found))
        return Effect(kind, says, numbers, facts, links=_links(press, batch, found))


def _request(press: Press, *, dry_run: bool) -> Redrive:
    chosen = selection_of(press.asked)
    return Redrive(chosen.errors, chosen.ranges, press.text("queue") or None, dry_run)


def _none(found: Redriving) -> str:
    """Why nothing is sent."""
    left = found.not_kept + sum(found.refused.values())
    if left:
        return f"Of {counted(left, 'failure')} none can be sent."
    if found.already:
        return f"{counted(found.already, 'failure')} {was(found.already)} redriven before."
    return "No failure matches." if found.finished else "Nothing to send was found so far; press again."


def _left(found: Redriving) -> tuple[tuple[str, str], ...]:
    """What is not sent, and why."""
    named = ", ".join(map(str, found.not_kept_items))
    more = ", \u2026" if found.not_kept > len(found.not_kept_items) else ""
    which = f": items {named}{more}" if named else ""
    facts = [("Redriven before", f"{found.already:,}")] if found.already else []
    facts += [("Message not kept", f"{found.not_kept:,}{which}")] if found.not_kept else []
    facts += [("Cannot be sent", f"{count:,}: {why}") for why, count in found.refused.items()]
    return tuple(facts)


def _links(press: Press, batch: Batch, found: Redriving) -> tuple[tuple[str, Segments], ...]:
    """The batches that have the items now."""
    batches = {found.batch_id} if found.batch_id is not None and found.items else set()
    if found.already:
        before = press.fanin.redrives.redrives(batch.batch_id).redrives
        batches |= {one.batch_id for one in before if one.batch_id is not None}
    others = sorted(batches - {batch.batch_id}, reverse=True)[:NAMED]
    return tuple((f"Batch {one}, which retries them", ("batches", one)) for one in others)


class ReleaseItems(ConsoleAction[Batch]):
    name, operation, title, hint = "release", "releaseItems", "Release", "Give up held items"
    danger = True

    def why_not(self, batch: Batch) -> str:
        if not batch.holds:
            return "The batch holds no items: an item that fails in it is done."
        if batch.state.terminal:
            return f"The batch is {state_of(batch)}: nothing is held any more."
        return "" if batch.held or batch.may_hold_more else "No item is held."

    def ask(self, press: Press, batch: Batch) -> Question:
        chosen = selection_of(press.asked)
        held, every = _held(press, batch.batch_id, chosen)
        least = "" if every else "at least "
        items = f"{least}{counted(held, 'held item')}"
        says, button = [described(chosen)], ""
        if held or not every:
            says += [
                f"{items[0].upper()}{items[1:]} {are(held)} marked as failed, which counts as done.",
                "When nothing else is pending, the batch completes with these failures.",
                "Their messages stay with the batch, and can be redriven when it has ended.",
            ]
            button = f"Give up {items}" if held else "Look further, and give up what is held"
        else:
            says.append("No held item matches.")
        return Question(
            tuple(filter(None, says)),
            button,
            (("Held, of those that match", f"{least}{held:,}"),),
            action.FINAL if button else "",
            narrowing=fields_of(chosen),
            address=address_of(chosen),
        )

    def do(self, press: Press, batch: Batch) -> Effect:
        chosen = selection_of(press.asked)
        release = press.fanin.ledger.release
        found, cursor, trouble = action.go_through(press, release, batch.batch_id, chosen)
        released = sum(page.released for page in found)
        given_up = f"{counted(released, 'held item')} given up"
        if cursor is not None:
            rest = {**address_of(chosen), "cursor": cursor}
            says = f"{given_up} so far. {trouble.strip()}".strip()
            return Effect(EffectKind.PARTLY, says, {"released": released}, again=action.AGAIN, address=rest)
        ended = f"The batch is {state_of(found[-1].batch)}."
        if not released:
            return action.nothing(f"Nothing was given up: no held item matches. {ended}", released=released)
        return action.done(f"{given_up}. {ended}", released=released)


def _held(press: Press, batch_id: int, chosen: Selection) -> tuple[int, bool]:
    """How many held items a selection has, and whether all failures were looked at."""
    held, cursor = 0, None
    for page in action.pages(press, press.fanin.ledger.failures, batch_id, limit=MAX_PAGE):
        held += sum(one.held and chosen.takes(one.ordinal, one.reason) for one in page.failures)
        cursor = page.cursor
    return held, cursor is None


REDRIVE: Final = RedriveFailures()
RELEASE: Final = ReleaseItems()
