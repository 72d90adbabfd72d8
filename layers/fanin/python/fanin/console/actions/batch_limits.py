"""The action that changes limits of a live batch: deadline, tolerated failures, stall time, milestones."""

from __future__ import annotations

from typing import Final

from fanin.client.conversions import milliseconds, seconds
from fanin.console.actions.action import ConsoleAction, Effect, EffectKind, Field, Press, Question, ShownFacts
from fanin.console.actions.progress import facts_of, state_of
from fanin.domain.batch import Batch, ChangeLimits, Kind, OnDeadline
from fanin.domain.ids import MAX_ITEMS
from fanin.errors import InvalidRequest
from fanin.wire import typed
from fanin.wire.json_types import encode_time

_MOST: Final = 256
"""Characters of a field."""
_FIELDS: Final = (
    ("deadline", "Deadline", "such as 2h, or 2026-11-21T20:00:00Z"),
    ("tolerated_failures", "Tolerated failures", "such as 10, or 5%"),
    ("min_sample", "Items before a share counts", "such as 20; without it, 100"),
    ("stall_after", "Stall time", "such as 15m; 0 for never"),
    ("milestones", "Milestones", "such as 50,90; or none"),
)
TYPED: Final = tuple(name for name, _, _ in _FIELDS)
"""The names of the fields."""


def _not_changed(batch: Batch) -> str:
    if batch.kind is not Kind.BATCH:
        return f"A {batch.kind} has limits of its own."
    ended = f"The batch is {state_of(batch)}; only limits of a live batch can change."
    return ended if batch.state.terminal else ""


def _ask(press: Press, batch: Batch) -> Question:
    then = "completes" if batch.on_deadline is OnDeadline.COMPLETE else "times out"
    says = (
        "What you leave empty stays as it is.",
        f"At its deadline the batch {then} with what is missing. A duration counts from your press.",
        "The batch is cancelled at once if more items have failed by now than you tolerate.",
    )
    facts = (*_limits(batch), *facts_of(press.fanin.ledger.status(batch.batch_id)))
    fields = (Field(name, label, press.text(name), hint=hint, most=_MOST) for name, label, hint in _FIELDS)
    return Question(says, "Change the limits", facts, fields=tuple(fields))


def _limits(batch: Batch) -> ShownFacts:
    """The limits as they are."""
    return (
        ("Deadline", "none" if batch.deadline is None else encode_time(batch.deadline)),
        ("Tolerated failures", batch.tolerated_failures.in_words if batch.tolerated_failures else "any"),
        ("Stall time", f"{batch.stall_after:,} s" if batch.stall_after else "never"),
        ("Milestones", ", ".join(f"{one}%" for one in batch.milestones) or "none"),
    )


def _change(press: Press, batch: Batch) -> Effect:
    after = press.fanin.ledger.change(batch.batch_id, _typed(press))
    was = dict(_limits(batch))
    facts = _limits(after)
    changed = [f"{label.lower()}, which was {was[label]}" for label, now in facts if now != was[label]]
    says = f"Changed: {'; '.join(changed)}." if changed else "The limits are what they were."
    if after.state.terminal:
        says += f" The batch is {state_of(after)} now."
    return Effect(EffectKind.DONE, says, {"items": after.items}, facts)


def _typed(press: Press) -> ChangeLimits:
    """What the form says, as ``fanin change`` reads it.

    Raises:
        InvalidRequest: a field is not what it should be.
    """
    deadline, stall_after, milestones, tolerated, sample = map(
        press.text, ("deadline", "stall_after", "milestones", "tolerated_failures", "min_sample")
    )
    if sample and not tolerated:
        raise InvalidRequest("a number of items goes with a tolerated share of failures, like 5%; give both")
    least = typed.whole(sample, 1, MAX_ITEMS) if sample else None
    return ChangeLimits(
        milliseconds(typed.moment(deadline), press.now()) if deadline else None,
        typed.tolerance(tolerated, least) if tolerated else None,
        seconds(typed.span(stall_after)) if stall_after else None,
        typed.percents(milestones) if milestones else None,
    )


LIMITS: Final = ConsoleAction(
    "limits",
    "changeLimits",
    "Change limits",
    "Deadline, tolerated failures, stall time, milestones",
    _not_changed,
    _ask,
    _change,
    typed=True,
)
