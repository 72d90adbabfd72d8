"""Verifying a batch: its state is recomputed from the items up, and what disagrees is repaired."""

from __future__ import annotations

from typing import Final

from fanin.console.actions.action import ConsoleAction, Effect, EffectKind, Field, Press, Question
from fanin.console.actions.paging import PAGES, pages
from fanin.console.actions.progress import facts_of, not_done, state_of
from fanin.console.actions.words import between
from fanin.domain.batch import Batch, Mode
from fanin.domain.plurals import counted
from fanin.errors import FaninError

LINES: Final = 50
"""Disagreements that an outcome lists; of more, it says how many."""


def _not_verified(batch: Batch) -> str:
    return "An estimated batch has no items to verify." if batch.mode is Mode.ESTIMATED else ""


def _ask(press: Press, batch: Batch) -> Question:
    progress = press.fanin.ledger.status(batch.batch_id)
    items, left = counted(progress.batch.items, "item"), between(*not_done(progress), "item")
    says = (
        f"The state of {items} is recomputed, and what disagrees is listed. Only what lies above the {left}"
        f" not done is read, in up to {PAGES} pages."
    )
    return Question(
        (says,),
        f"Verify {items}",
        facts_of(progress),
        fields=(Field("repair", "Repair what disagrees", "yes", kind="checkbox"),),
    )


def _verify(press: Press, batch: Batch) -> Effect:
    repair = press.text("repair") == "yes"
    cursor, pending, trouble = press.text("cursor") or None, 0, ""
    found: list[str] = []
    unrepaired, row = 0, batch
    for page in pages(press.now):
        try:
            verdict = press.fanin.ledger.verify(batch.batch_id, cursor=cursor, repair=repair)
        except FaninError as error:
            if not page:
                raise
            trouble = f" Then: {error}"  # what was repaired before stays so
            break
        pending += verdict.pending
        found += verdict.disagreements
        unrepaired += 0 if verdict.repaired else len(verdict.disagreements)
        cursor, row = verdict.cursor, verdict.batch
        if cursor is None:
            break
    lines = (*found[:LINES], *([f"and {len(found) - LINES:,} more"] if len(found) > LINES else []))
    numbers = {"disagreements": len(found), "repaired": len(found) - unrepaired, "pending": pending}
    facts = (("Not done, as counted", f"{pending:,}"), ("State", state_of(row)))
    says = _says(len(found), unrepaired)
    if cursor is None:
        changed = EffectKind.PARTLY if unrepaired else EffectKind.DONE
        return Effect(changed, f"{says} All items were looked at.", numbers, facts, lines)
    return Effect(
        EffectKind.PARTLY,
        f"{says} {counted(pending, 'item')} that are not done were looked at so far.{trouble}",
        numbers,
        facts,
        lines,
        again="Go on with the rest",
        address={"cursor": cursor, "repair": "yes" if repair else None},
    )


def _says(found: int, unrepaired: int) -> str:
    if not found:
        return "Nothing disagrees."
    repaired = found - unrepaired
    parts = [f"{counted(repaired, 'disagreement')} found and repaired."] if repaired else []
    parts += [f"{counted(unrepaired, 'disagreement')} found and not repaired."] if unrepaired else []
    return " ".join(parts)


VERIFY: Final = ConsoleAction(
    "verify", "verifyBatch", "Verify", "Recompute its state from the items", _not_verified, _ask, _verify
)
