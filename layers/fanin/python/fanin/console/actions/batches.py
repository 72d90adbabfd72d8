"""Actions on a whole batch: close, cancel, change limits, verify, remove, and tell its targets again."""

from collections.abc import Sequence
from typing import Final

from fanin.client.conversions import milliseconds, seconds
from fanin.console.actions import action
from fanin.console.actions.action import ConsoleAction, Effect, EffectKind, Field, Press, Question, ShownFacts
from fanin.console.actions.failures import REDRIVE, RELEASE
from fanin.console.actions.words import are, between, facts_of, not_done, state_of, was
from fanin.domain.batch import Batch, ChangeLimits, Kind, Mode, OnDeadline, State
from fanin.domain.ids import MAX_ITEMS
from fanin.domain.limits import counted
from fanin.domain.targets import TargetReport, TargetState
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


class Limits(ConsoleAction[Batch]):
    name, operation, title = "limits", "changeLimits", "Change limits"
    hint = "Deadline, tolerated failures, stall time, milestones"
    typed = True

    def why_not(self, batch: Batch) -> str:
        if batch.kind is not Kind.BATCH:
            return f"A {batch.kind} has limits of its own."
        ended = f"The batch is {state_of(batch)}; only limits of a live batch can change."
        return ended if batch.state.terminal else ""

    def ask(self, press: Press, batch: Batch) -> Question:
        then = "completes" if batch.on_deadline is OnDeadline.COMPLETE else "times out"
        says = (
            "What you leave empty stays as it is.",
            f"At its deadline the batch {then} with what is missing. A duration counts from your press.",
            "The batch is cancelled at once if more items have failed by now than you tolerate.",
        )
        facts = (*_limits(batch), *facts_of(press.fanin.ledger.status(batch.batch_id)))
        fields = (
            Field(name, label, press.text(name), hint=hint, most=_MOST) for name, label, hint in _FIELDS
        )
        return Question(says, "Change the limits", facts, fields=tuple(fields))

    def do(self, press: Press, batch: Batch) -> Effect:
        after = press.fanin.ledger.change(batch.batch_id, _limits_typed(press))
        was = dict(_limits(batch))
        facts = _limits(after)
        changed = [f"{label.lower()}, which was {was[label]}" for label, now in facts if now != was[label]]
        says = f"Changed: {'; '.join(changed)}." if changed else "The limits are what they were."
        if after.state.terminal:
            says += f" The batch is {state_of(after)} now."
        return action.done(says, facts, items=after.items)


def _limits(batch: Batch) -> ShownFacts:
    """The limits as they are."""
    return (
        ("Deadline", "none" if batch.deadline is None else encode_time(batch.deadline)),
        ("Tolerated failures", batch.tolerated_failures.in_words if batch.tolerated_failures else "any"),
        ("Stall time", f"{batch.stall_after:,} s" if batch.stall_after else "never"),
        ("Milestones", ", ".join(f"{one}%" for one in batch.milestones) or "none"),
    )


def _limits_typed(press: Press) -> ChangeLimits:
    """What the form says, as ``fanin change`` reads it.

    Raises:
        InvalidRequest: a field is not what it should be.
    """
    deadline, tolerated, sample, stall_after, milestones = map(press.text, TYPED)
    if sample and not tolerated:
        raise InvalidRequest("a number of items goes with a tolerated share of failures, like 5%; give both")
    least = typed.whole(sample, 1, MAX_ITEMS) if sample else None
    return ChangeLimits(
        milliseconds(typed.moment(deadline), press.now()) if deadline else None,
        typed.tolerance(tolerated, least) if tolerated else None,
        seconds(typed.span(stall_after)) if stall_after else None,
        typed.percents(milestones) if milestones else None,
    )


LINES: Final = 50
"""Disagreements that an outcome lists; of more, it says how many."""


class Verify(ConsoleAction[Batch]):
    name, operation, title = "verify", "verifyBatch", "Verify"
    hint = "Recompute its state from the items"

    def why_not(self, batch: Batch) -> str:
        return "An estimated batch has no items to verify." if batch.mode is Mode.ESTIMATED else ""

    def ask(self, press: Press, batch: Batch) -> Question:
        progress = press.fanin.ledger.status(batch.batch_id)
        items, left = counted(progress.batch.items, "item"), between(*not_done(progress), "item")
        says = (
            f"The state of {items} is recomputed, and what disagrees is listed. Only what lies above the"
            f" {left} not done is read, in up to {action.PAGES} pages."
        )
        repair = Field("repair", "Repair what disagrees", "yes", kind="checkbox")
        return Question((says,), f"Verify {items}", facts_of(progress), fields=(repair,))

    def do(self, press: Press, batch: Batch) -> Effect:
        repair = press.text("repair") == "yes"
        verify = press.fanin.ledger.verify
        verdicts, cursor, trouble = action.go_through(press, verify, batch.batch_id, repair=repair)
        pending = sum(verdict.pending for verdict in verdicts)
        found = [one for verdict in verdicts for one in verdict.disagreements]
        unrepaired = sum(len(verdict.disagreements) for verdict in verdicts if not verdict.repaired)
        repaired = len(found) - unrepaired
        lines = (*found[:LINES], *([f"and {len(found) - LINES:,} more"] if len(found) > LINES else []))
        numbers = {"disagreements": len(found), "repaired": repaired, "pending": pending}
        facts = (("Not done, as counted", f"{pending:,}"), ("State", state_of(verdicts[-1].batch)))
        says = f"{counted(repaired, 'disagreement')} found and repaired. " if repaired else ""
        says += f"{counted(unrepaired, 'disagreement')} found and not repaired. " if unrepaired else ""
        says = says or "Nothing disagrees. "
        if cursor is None:
            changed = EffectKind.PARTLY if unrepaired else EffectKind.DONE
            return Effect(changed, f"{says}All items were looked at.", numbers, facts, lines)
        says += f"{counted(pending, 'item')} that are not done were looked at so far.{trouble}"
        rest = {"cursor": cursor, "repair": "yes" if repair else None}
        return Effect(EffectKind.PARTLY, says, numbers, facts, lines, again=action.AGAIN, address=rest)


class Close(ConsoleAction[Batch]):
    name, operation, title, hint = "close", "closeBatch", "Close", "It takes no more items"

    def why_not(self, batch: Batch) -> str:
        if batch.kind is not Kind.BATCH:
            return f"A {batch.kind} is not closed by hand."
        closed = f"The batch is {state_of(batch)}: it takes no more items anyway."
        return "" if batch.state is State.OPEN else closed

    def ask(self, press: Press, batch: Batch) -> Question:
        progress = press.fanin.ledger.status(batch.batch_id)
        items, (low, high) = progress.batch.items, not_done(progress)
        if not high:
            then = f"{_all(items)}, so it completes at once."
        else:
            verb = are(low, high)
            then = f"It completes when the {between(low, high, 'item')} that {verb} not done {verb} done."
        stays = f"The batch takes no more items: it stays at {counted(items, 'item')}."
        return Question((stays, then), f"Close the batch at {counted(items, 'item')}", facts_of(progress))

    def do(self, press: Press, batch: Batch) -> Effect:
        after = press.fanin.ledger.close(batch.batch_id)
        if after.state is State.COMPLETE:
            says = f"The batch is closed and complete: {_all(after.items).lower()}."
            return action.done(says, items=after.items, not_done=0)
        if after.state is not State.CLOSED:
            return action.nothing(f"Nothing was done: the batch is {state_of(after)} by now.")
        low, high = not_done(press.fanin.ledger.status(batch.batch_id))
        left = f"{between(low, high, 'item')} {are(low, high)} not done yet"
        says = f"The batch takes no more items. It has {after.items:,}, and {left}."
        return action.done(says, items=after.items, not_done=high)


def _all(items: int) -> str:
    return f"All {items:,} items are done" if items else "It has no items"


class Cancel(ConsoleAction[Batch]):
    name, operation, title, hint = "cancel", "cancelBatch", "Cancel", "Give up what is not done"
    danger = True

    def why_not(self, batch: Batch) -> str:
        if batch.kind is Kind.BUFFER:
            return "A buffer's batch is not cancelled by hand. Change the limit of the buffer, or delete it."
        return f"The {batch.kind} has ended: it is {state_of(batch)}." if batch.state.terminal else ""

    def ask(self, press: Press, batch: Batch) -> Question:
        progress = press.fanin.ledger.status(batch.batch_id)
        low, high = not_done(progress)
        says, button = f"{_all(progress.batch.items)}.", f"Cancel the {batch.kind}"
        if high:
            left = f"{between(low, high, 'item')} {are(low, high)} not done"
            says = f"{left}: nobody waits for {'it' if low == high == 1 else 'them'} any longer."
            button = f"Cancel {between(low, high, 'item')} that {are(low, high)} not done"
        late = "Acknowledgements that come later change nothing. Consumers drop the messages once they know."
        return Question((says, late), button, facts_of(progress), action.FINAL)

    def do(self, press: Press, batch: Batch) -> Effect:
        after = press.fanin.ledger.cancel(batch.batch_id)
        if after.state is not State.CANCELLED:
            return action.nothing(f"Nothing was cancelled: the {batch.kind} is {state_of(after)} by now.")
        low, high = not_done(press.fanin.ledger.status(batch.batch_id))
        left = f"{between(low, high, 'item')} of {after.items:,} {was(low, high)} not done"
        says = f"The {batch.kind} is cancelled: {left}."
        return action.done(says, items=after.items, not_done=high)


class Remove(ConsoleAction[Batch]):
    name, operation, title, hint = "remove", "removeBatch", "Remove", "It can no longer be read"
    danger = True

    def why_not(self, batch: Batch) -> str:
        live = f"The {batch.kind} is {state_of(batch)}; only what has ended is removed."
        return "" if batch.state.terminal else live

    def ask(self, _: Press, batch: Batch) -> Question:
        what = f"the {batch.kind} and its {counted(batch.items, 'item')}"
        failures = f"Its {counted(batch.failed, 'failure')} and their messages go with it."
        says = (
            f"{what.capitalize()} can no longer be read or redriven.",
            *([failures] if batch.failed else []),
            "Its end is announced all the same.",
        )
        facts = (("State", state_of(batch)), ("Items", f"{batch.items:,}"), ("Failed", f"{batch.failed:,}"))
        return Question(says, f"Remove {what}", facts, action.FINAL)

    def do(self, press: Press, batch: Batch) -> Effect:
        removed = press.fanin.ledger.remove(batch.batch_id)
        if not removed.batches:
            return action.nothing(f"Nothing was done: the {batch.kind} was removed before.", gone=True)
        says = f"The {batch.kind} and its {counted(removed.items, 'item')} are removed."
        return action.done(says, gone=True, batches=removed.batches, items=removed.items)


class Redeliver(ConsoleAction[Batch]):
    name, operation, title = "redeliver", "redeliverTargets", "Tell targets again"
    hint = "Those that could not be told"

    def why_not(self, batch: Batch) -> str:
        if not batch.targets:
            return "Nobody is to be told of its end: it was opened without targets."
        live = f"The {batch.kind} is {state_of(batch)}; targets are told when it ends."
        return "" if batch.state.terminal else live

    def ask(self, press: Press, batch: Batch) -> Question:
        reports = press.fanin.ledger.targets(batch.batch_id).targets
        again, facts = _untold(reports), _told(reports)
        untried = sum(one.state is TargetState.PENDING for one in reports)
        told = sum(one.state is TargetState.DELIVERED for one in reports)
        if not again:
            return Question(("Every target was told that wants to be.",), "", facts)
        says = (
            f"{counted(again, 'target')} {was(again)} not told yet, {untried:,} of them never tried: now.",
            f"{counted(told, 'target')} that {are(told)} told already {are(told)} left alone.",
        )
        return Question(says, f"Tell {counted(again, 'target')} again", facts)

    def do(self, press: Press, batch: Batch) -> Effect:
        again = _untold(press.fanin.ledger.targets(batch.batch_id).targets)
        after = press.fanin.ledger.redeliver(batch.batch_id).targets
        facts = _told(after)
        if not again:
            return action.nothing("Nothing was sent: every target was told that wants to be.", facts)
        says = f"{counted(again, 'target')} {are(again)} told again, of {len(after):,}."
        return action.done(says, facts, told_again=again, targets=len(after))


def _untold(reports: Sequence[TargetReport]) -> int:
    return sum(not one.state.settled for one in reports)


def _told(reports: Sequence[TargetReport]) -> ShownFacts:
    """How far each target is."""
    return tuple(
        (f"{one.type} {one.to}", f"{one.state}: {one.last_error}" if one.last_error else str(one.state))
        for one in reports
    )


CANCEL: Final = Cancel()
ACTIONS: Final = (Close(), REDRIVE, RELEASE, Verify(), Redeliver(), Limits(), CANCEL, Remove())
"""In the order of their buttons."""
