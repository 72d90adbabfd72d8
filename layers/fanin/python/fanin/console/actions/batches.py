"""Actions on a whole batch: close, cancel, change limits, remove, verify, and tell its targets again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fanin.console.actions.action import ConsoleAction, Effect, EffectKind, Press, Question, nothing
from fanin.console.actions.batch_limits import LIMITS
from fanin.console.actions.failures import REDRIVE, RELEASE
from fanin.console.actions.progress import facts_of, not_done, state_of
from fanin.console.actions.verify import VERIFY
from fanin.console.actions.words import are, between, was
from fanin.domain.batch import Batch, Kind, State
from fanin.domain.plurals import counted
from fanin.domain.targets import TargetReport, TargetState


def _not_closed(batch: Batch) -> str:
    if batch.kind is not Kind.BATCH:
        return f"A {batch.kind} is not closed by hand."
    if batch.state is State.OPEN:
        return ""
    return f"The batch is {state_of(batch)}: it takes no more items anyway."


def _ask_close(press: Press, batch: Batch) -> Question:
    progress = press.fanin.ledger.status(batch.batch_id)
    items, (low, high) = progress.batch.items, not_done(progress)
    if not high:
        then = f"{_all(items)}, so it completes at once."
    elif low == high:
        then = f"It completes when the {counted(high, 'item')} that {are(high)} not done {are(high)} done."
    else:
        then = f"It completes when the {between(low, high, 'item')} that are not done are done."
    return Question(
        (f"The batch takes no more items: it stays at {counted(items, 'item')}.", then),
        f"Close the batch at {counted(items, 'item')}",
        facts_of(progress),
    )


def _close(press: Press, batch: Batch) -> Effect:
    after = press.fanin.ledger.close(batch.batch_id)
    if after.state is State.COMPLETE:
        says = f"The batch is closed and complete: {_all(after.items).lower()}."
        return Effect(EffectKind.DONE, says, {"items": after.items, "not_done": 0})
    if after.state is not State.CLOSED:
        return nothing(f"Nothing was done: the batch is {state_of(after)} by now.")
    progress = press.fanin.ledger.status(batch.batch_id)
    low, high = not_done(progress)
    left = f"{between(low, high, 'item')} {are(high)} not done yet"
    says = f"The batch takes no more items. It has {after.items:,}, and {left}."
    return Effect(EffectKind.DONE, says, {"items": after.items, "not_done": high})


def _all(items: int) -> str:
    return f"All {items:,} items are done" if items else "It has no items"


def _not_cancelled(batch: Batch) -> str:
    if batch.kind is Kind.BUFFER:
        return "A buffer's batch is not cancelled by hand. Change the limit of the buffer, or delete it."
    return f"The {batch.kind} has ended: it is {state_of(batch)}." if batch.state.terminal else ""


def _ask_cancel(press: Press, batch: Batch) -> Question:
    progress = press.fanin.ledger.status(batch.batch_id)
    low, high = not_done(progress)
    given_up = between(low, high, "item")
    return Question(
        (
            f"{given_up} {are(high)} not done: nobody waits for {'it' if high == 1 else 'them'} any longer."
            if high
            else f"{_all(progress.batch.items)}.",
            "Acknowledgements that come later change nothing. Consumers drop the messages once they know.",
        ),
        f"Cancel {given_up} that {are(high)} not done" if high else f"Cancel the {batch.kind}",
        facts_of(progress),
        warning="This cannot be undone.",
    )


def _cancel(press: Press, batch: Batch) -> Effect:
    after = press.fanin.ledger.cancel(batch.batch_id)
    if after.state is not State.CANCELLED:
        return nothing(f"Nothing was cancelled: the {batch.kind} is {state_of(after)} by now.")
    progress = press.fanin.ledger.status(batch.batch_id)
    low, high = not_done(progress)
    left = f"{between(low, high, 'item')} of {after.items:,} {was(high)} not done"
    says = f"The {batch.kind} is cancelled: {left}."
    return Effect(EffectKind.DONE, says, {"items": after.items, "not_done": high})


def _not_removed(batch: Batch) -> str:
    live = f"The {batch.kind} is {state_of(batch)}; only what has ended is removed."
    return "" if batch.state.terminal else live


def _ask_remove(_: Press, batch: Batch) -> Question:
    what = f"the {batch.kind} and its {counted(batch.items, 'item')}"
    says = [f"{what.capitalize()} can no longer be read or redriven."]
    says += [f"Its {counted(batch.failed, 'failure')} and their messages go with it."] if batch.failed else []
    says += ["Its end is announced all the same."]
    return Question(
        tuple(says),
        f"Remove {what}",
        (("State", state_of(batch)), ("Items", f"{batch.items:,}"), ("Failed", f"{batch.failed:,}")),
        warning="This cannot be undone.",
    )


def _remove(press: Press, batch: Batch) -> Effect:
    removed = press.fanin.ledger.remove(batch.batch_id)
    if not removed.batches:
        return Effect(
            EffectKind.NOTHING, f"Nothing was done: the {batch.kind} was removed before.", gone=True
        )
    says = f"The {batch.kind} and its {counted(removed.items, 'item')} are removed."
    return Effect(EffectKind.DONE, says, {"batches": removed.batches, "items": removed.items}, gone=True)


def _not_redelivered(batch: Batch) -> str:
    if not batch.targets:
        return "Nobody is to be told of its end: it was opened without targets."
    live = f"The {batch.kind} is {state_of(batch)}; targets are told when it ends."
    return "" if batch.state.terminal else live


def _ask_redeliver(press: Press, batch: Batch) -> Question:
    reports = press.fanin.ledger.targets(batch.batch_id).targets
    again = _untold(reports)
    untried = sum(one.state is TargetState.PENDING for one in reports)
    told = sum(one.state is TargetState.DELIVERED for one in reports)
    facts = tuple((f"{one.type} {one.to}", _how_far(one.state, one.last_error)) for one in reports)
    if not again:
        return Question(("Every target was told that wants to be.",), "", facts)
    return Question(
        (
            f"{counted(again, 'target')} {was(again)} not told yet, {untried:,} of them never tried: now.",
            f"{counted(told, 'target')} that {are(told)} told already {are(told)} left alone.",
        ),
        f"Tell {counted(again, 'target')} again",
        facts,
    )


def _redeliver(press: Press, batch: Batch) -> Effect:
    before = press.fanin.ledger.targets(batch.batch_id).targets
    again = _untold(before)
    after = press.fanin.ledger.redeliver(batch.batch_id).targets
    facts = tuple((f"{one.type} {one.to}", _how_far(one.state, one.last_error)) for one in after)
    if not again:
        return Effect(
            EffectKind.NOTHING, "Nothing was sent: every target was told that wants to be.", facts=facts
        )
    says = f"{counted(again, 'target')} {are(again)} told again, of {len(after):,}."
    return Effect(EffectKind.DONE, says, {"told_again": again, "targets": len(after)}, facts)


def _untold(reports: Sequence[TargetReport]) -> int:
    return sum(not one.state.settled for one in reports)


def _how_far(state: TargetState, error: str | None) -> str:
    return f"{state}: {error}" if error else str(state)


CLOSE: Final = ConsoleAction(
    "close", "closeBatch", "Close", "It takes no more items", _not_closed, _ask_close, _close
)
CANCEL: Final = ConsoleAction(
    "cancel",
    "cancelBatch",
    "Cancel",
    "Give up what is not done",
    _not_cancelled,
    _ask_cancel,
    _cancel,
    danger=True,
)
REMOVE: Final = ConsoleAction(
    "remove",
    "removeBatch",
    "Remove",
    "It can no longer be read",
    _not_removed,
    _ask_remove,
    _remove,
    danger=True,
)
REDELIVER: Final = ConsoleAction(
    "redeliver",
    "redeliverTargets",
    "Tell targets again",
    "Those that could not be told",
    _not_redelivered,
    _ask_redeliver,
    _redeliver,
)
ACTIONS: Final[Mapping[str, ConsoleAction[Batch]]] = {
    one.name: one for one in (CLOSE, REDRIVE, RELEASE, VERIFY, REDELIVER, LIMITS, CANCEL, REMOVE)
}
"""By name, in the order of their buttons."""
