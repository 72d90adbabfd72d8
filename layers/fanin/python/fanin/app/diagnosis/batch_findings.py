"""What the batch itself says about why it is not finished: its row, its items, and the notes of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fanin.app.diagnosis.gathering import Facts
from fanin.domain.batch import Batch, Kind, State
from fanin.domain.diagnosis import Code, Finding, Severity
from fanin.domain.limits import counted
from fanin.domain.targets import TargetState
from fanin.wire.json_types import encode_time

_NEAR_MS = 600_000
"""How long before a deadline it is worth saying."""
_EXACT_FROM = 100
"""Items a second from which three digits are less than the whole number."""


def batch_findings(facts: Facts, queues: Sequence[Finding]) -> list[Finding]:
    """All findings of a batch.

    Args:
        facts: what is known.
        queues: what follows from its queues.
    """
    if facts.batch.state.terminal:
        # What held it up may hold up the next one, and is mended no differently.
        seen = [*queues, *_retrying(facts)] if facts.left_undone else []
        return [*_targets(facts), _ended(facts), *(replace(one, severity=Severity.INFO) for one in seen)]
    found = [*queues]
    for of in (_unsettled, _open, _draining, _never_sent, _retrying, _held, _children, _slow, _deadline):
        found += of(facts)
    context = (Code.NOT_SEEN, Code.DRAINING, Code.DEADLINE_NEAR)
    explained = any(one.code not in context for one in found)
    return found if explained else [*found, _unexplained(facts)]


def _ended(facts: Facts) -> Finding:
    batch, ident = facts.batch, facts.batch.batch_id
    undone = batch.items - facts.done_max
    left = f" At least {counted(undone, 'item was', 'items were')} not done." if undone else ""
    advice = (
        f"Nothing is waited for any more. `fanin missing {ident}` and `fanin failures {ident}` list what was"
        " not done."
    )
    if facts.left_undone:
        queue = facts.sent[-1].queue if facts.sent else "URL"
        left += _cut_off(batch)
        again = (
            f" `fanin resend {ident} FILE --queue {queue}` does that with the file that `fanin fanout` sent."
            if batch.kind is Kind.BATCH and batch.retry_of is None
            else ""
        )
        advice = (
            f"Send what is missing as a new batch; `fanin missing {ident}` lists it.{again} `fanin expire"
            f" --batch {ident}` then removes this one, also from what `fanin attention` lists."
        )
    return Finding(
        Code.ENDED,
        Severity.WARNING if facts.left_undone else Severity.INFO,
        f"The batch has ended: it is {batch.state}",
        f"{facts.done_min:,} of {batch.items:,} items are known to be done.{left}",
        advice,
        {"state": batch.state.value, "items": batch.items},
    )


def _cut_off(batch: Batch) -> str:
    """Why it ended before they were, and what becomes of their messages."""
    if batch.state is State.ORPHANED:
        why = " Nothing happened for its idle time, or its lifetime was over."
    else:
        why = "" if batch.deadline is None else f" Its deadline was {encode_time(batch.deadline)}."
    dropped = " Consumers drop messages of a batch that has ended." if batch.kind is Kind.BATCH else ""
    return f"{why}{dropped}"


def _targets(facts: Facts) -> Iterator[Finding]:
    for one in facts.targets:
        if one.state not in {TargetState.FAILED, TargetState.PARKED}:
            continue
        since = "" if one.failing_since is None else f" since {encode_time(one.failing_since)}"
        again = one.next_at is not None and f"tried again by {encode_time(one.next_at)}"
        yield Finding(
            Code.TARGET_FAILS,
            Severity.ERROR if one.state is TargetState.PARKED else Severity.WARNING,
            "A target could not be told of the end",
            f"Target {one.number}, {one.to}, has failed {counted(one.attempts, 'time', 'times')}{since}; it"
            f" is {again or 'not tried any more'}. The last error: {one.last_error}",
            f"Mend the receiver; `fanin targets {facts.batch.batch_id} --redeliver` tells it at once.",
            {"target": one.number, "attempts": one.attempts},
        )


def _unsettled(facts: Facts) -> Iterator[Finding]:
    if facts.all_done and not facts.open:
        yield Finding(
            Code.DONE_UNSETTLED,
            Severity.ERROR,
            "Every item is done, but the batch does not know it yet",
            "A process died between marking the last items and completing the batch, or does so right now.",
            f"`fanin verify {facts.batch.batch_id} --repair` completes it at once; else the reaper does"
            " within 15 minutes after the close, or at growing intervals.",
            {"items": facts.batch.items},
        )


def _open(facts: Facts) -> Iterator[Finding]:
    if not facts.open or facts.batch.kind is Kind.BUFFER:
        return
    items = facts.batch.items
    if items and facts.all_done:
        all_items = "The only item is" if items == 1 else f"All {items:,} items are"
        detail = f"{all_items} done; only the close is missing."
    elif items:
        detail = f"{counted(items, 'item was', 'items were')} added so far, and more may follow."
    else:
        detail = "No item was added yet."
    yield Finding(
        Code.OPEN_NOT_CLOSED,
        Severity.INFO if facts.recent else Severity.WARNING,
        "The batch is still open",
        f"{detail} An open batch never completes.",
        f"Close it once everything is added: `fanin close {facts.batch.batch_id}`, or leave the producer's"
        " `with` block. If the producer died, repeat it with its keys, or cancel the batch.",
        {"items": items},
    )


def _draining(facts: Facts) -> Iterator[Finding]:
    batch = facts.batch
    if batch.draining and not facts.all_done:
        cap = "" if batch.max_items is None else f" of at most {batch.max_items:,}"
        yield Finding(
            Code.DRAINING,
            Severity.INFO,
            "The batch drains: its items may add more",
            f"It has {counted(batch.items, 'item', 'items')}{cap} so far. It closes by itself once all are"
            " done; until then each pending item may add others.",
            f"Wait. To stop it from growing, close it: `fanin close {batch.batch_id}`.",
            {"items": batch.items},
        )


def _never_sent(facts: Facts) -> Iterator[Finding]:
    """Items were added, and no note says that their messages were sent."""
    unsent = [found for found in facts.not_held if facts.unsent(found)]
    if not unsent or facts.batch.kind is not Kind.BATCH:
        return
    if facts.sent:
        first, count = unsent[0].start, sum(found.stop - found.start for found in unsent)
        # A block is noted after it was sent, so a producer at work is a little ahead of its notes.
        at_work = facts.recent and facts.open
        missing = Severity.ERROR if facts.quiet else Severity.WARNING
        yield Finding(
            Code.NEVER_SENT,
            Severity.INFO if at_work else missing,
            "Items were probably never sent",
            f"At least {count:,} missing items, from item {first} on, were added, and no note says that their"
            " messages were sent, as it does for other items of the batch.",
            "Repeat the producer with the same keys: it sends what is missing under the same items."
            f" {facts.lost()}",
            {"first": first, "items": count},
        )
    elif not facts.begun and not facts.held and not facts.children:  # items of children need no messages
        yield Finding(
            Code.NEVER_SENT,
            Severity.INFO if facts.recent else Severity.WARNING,
            "There is no note that messages were sent",
            f"The batch has {counted(facts.batch.items, 'item', 'items')} and none is done. `batch.send`"
            " notes what it sends, and there is no such note. If you send messages yourself, none is"
            " expected.",
            "Check that the producer has sent the messages, each with its item id.",
            {"items": facts.batch.items},
        )


def _retrying(facts: Facts) -> Iterator[Finding]:
    if not facts.retries:
        return
    last, count = max(facts.retries.values(), key=lambda row: row.at), len(facts.retries)
    evidence: dict[str, str | int] = {"items": count, "item": last.ordinal, "attempt": last.attempt}
    yield Finding(
        Code.RETRYING,
        Severity.WARNING,
        "Handling fails and is tried again",
        f"At least {counted(count, 'missing item was', 'missing items were')} tried more than once. The last"
        f" attempt, number {last.attempt} at item {last.ordinal}, failed: {last.error}",
        "Fix the cause; the messages come again by themselves until the queue's limit of receives.",
        {**evidence, "error": last.error, "queue": last.queue},
    )


def _held(facts: Facts) -> Iterator[Finding]:
    if facts.held:
        first, reason = min(facts.held.items())
        yield Finding(
            Code.HELD,
            Severity.INFO,
            "Failed items are held",
            f"{'At least ' if facts.held_more else ''}"
            f"{counted(len(facts.held), 'failed item waits', 'failed items wait')} for a decision, because"
            f" the batch was opened to hold them. Item {first} failed: {reason}",
            f"Fix the cause and send them again: `fanin redrive {facts.batch.batch_id}`. Or acknowledge those"
            " whose work is done, or let the batch complete with these failures: `fanin release"
            f" {facts.batch.batch_id}`.",
            {"held": len(facts.held), "item": first},
        )


def _children(facts: Facts) -> Iterator[Finding]:
    for ordinal, child in facts.children.items():
        yield Finding(
            Code.CHILD_RUNNING,
            Severity.INFO,
            "A child batch is running",
            f"Item {ordinal} waits for batch {child.batch_id}, which is {child.state}.",
            f"Ask why that one is not finished: `fanin why {child.batch_id}`.",
            {"item": ordinal, "child": child.batch_id, "state": child.state.value},
        )


def _slow(facts: Facts) -> Iterator[Finding]:
    """Items are marked: the batch moves, however slowly, or did until not long ago."""
    if not facts.moving or facts.all_done or facts.all_held:
        return
    evidence: dict[str, str | int] = {"done_min": facts.done_min, "items": facts.batch.items}
    eta = _eta(facts)
    overdue = eta is not None and eta * 1000 < facts.now - facts.batch.active_at
    if eta is None:
        speed = "How fast cannot be told from so few reads."
    else:
        rate = _rate(facts.done_min * 1000 / (facts.now - facts.batch.created_at))
        evidence |= {"items_per_second": rate, "eta_seconds": eta}
        speed = (
            f"Since it was opened, about {rate} items a second were done; at that rate the rest takes"
            f" about {_span(eta)}."
        )
        if overdue:
            speed += (
                " That has passed: probably their messages have failed, and come again after the queue's"
                " visibility timeout. A first failure is not noted, the next one is."
            )
    yield Finding(
        Code.SLOW,
        Severity.INFO,
        "The batch is moving" if facts.recent and not overdue else "Items are done, but perhaps none lately",
        f"At least {facts.done_min:,} of {facts.batch.items:,} items are done, and the last activity"
        f" was at most {_span((facts.now - facts.batch.active_at) // 1000)} ago. {speed}",
        "Look at what the consumers log: a handler that fails says why there."
        if overdue
        else "Wait, or give it more consumers.",
        evidence,
    )


def _deadline(facts: Facts) -> Iterator[Finding]:
    deadline = facts.batch.deadline
    if deadline is None:
        return
    left, eta = deadline - facts.now, _eta(facts) if facts.moving else None
    late = eta is not None and eta * 1000 > left
    if left > _NEAR_MS and not late:
        return
    seconds = max(0, left // 1000)
    yield Finding(
        Code.DEADLINE_NEAR,
        Severity.WARNING if late else Severity.INFO,
        "The deadline will probably be missed" if late else "The deadline is near",
        f"The deadline is in {_span(seconds)}; then the batch will"
        f" {'complete with what is done' if facts.batch.on_deadline.value == 'complete' else 'time out'}.",
        "Give it more consumers, or accept what the deadline does.",
        {"seconds_left": seconds},
    )


def _unexplained(facts: Facts) -> Finding:
    since = (facts.now - facts.batch.active_until(facts.now)) // 1000
    return Finding(
        Code.UNEXPLAINED,
        Severity.INFO if facts.recent else Severity.WARNING,
        "Items are missing, and nothing that fanin can see says why",
        f"At least {counted(facts.batch.items - facts.done_max, 'item is', 'items are')} missing, and"
        f" there was no activity for {_span(since)} at least.",
        "Check the consumers and their queue. What `batch.send` sends is noted, and its queue is looked at.",
        {"quiet_seconds": since},
    )


def _eta(facts: Facts) -> int | None:
    """Seconds until the rest is done at the average rate so far; None if that is not known."""
    elapsed = facts.now - facts.batch.created_at
    if not facts.done_min or elapsed <= 0:
        return None
    return round((facts.batch.items - facts.done_min) * elapsed / facts.done_min / 1000)


def _rate(items: float) -> str:
    """A rate for people, without an exponent however high it is."""
    return f"{items:.0f}" if items >= _EXACT_FROM else f"{items:.3g}"


def _span(seconds: int) -> str:
    """A duration for people."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:,} {unit}"
    return counted(seconds, "second", "seconds")
