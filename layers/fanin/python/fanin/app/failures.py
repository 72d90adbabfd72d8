"""What is kept of failed items: notes, and messages; small messages in rows, large ones in the bucket.

A note is written before its item is marked: first the message, then the note that names it. So whenever an
item reads as failed, its note and its message are there. A crash in between leaves what nobody reads, and a
repeat writes the same again. Of several failures of one item the first note stays, and the first message; if
its batch holds failed items, the last of each. A queue delivers the same message each time, so both are right
unless somebody fails an item with a message of another.

Of items whose messages died, notes of their batches say why the last attempts failed, and in which queue.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from fanin.app.ports import Ports
from fanin.app.ports.batches import ItemPlace
from fanin.app.ports.parts import IN_ROW, FailureRow, RetryRow
from fanin.domain import ids, limits
from fanin.domain.batch import Batch
from fanin.domain.claim_checks import claim_key
from fanin.domain.failures import Keep, KeptMessage
from fanin.errors import AccessDenied, FaninError, InvalidRequest, NotConfigured, RequestTooLarge
from fanin.wire.messages import unpack


def _keep_messages(
    ports: Ports, messages: Mapping[ItemPlace, bytes], batches: Mapping[int, Batch]
) -> tuple[Mapping[ItemPlace, str], Mapping[ItemPlace, FaninError]]:
    """Store messages; a repeat stores the same again.

    Args:
        ports: the rows and the bucket.
        messages: each as ``wire.messages.pack`` gives it.
        batches: their batches.

    Returns:
        Where each is: what ``FailureRow.kept`` says; and why others cannot be kept: they are too large,
        or too large for a row, and this process has no bucket.
    """
    refused: dict[ItemPlace, FaninError] = {
        place: RequestTooLarge(
            f"the message of a failed item has {len(content)} bytes as JSON; a message that is kept may"
            f" have {limits.MAX_FAILED_MESSAGES}: pass a shorter one, or none"
        )
        for place, content in messages.items()
        if len(content) > limits.MAX_FAILED_MESSAGES
    }
    messages = {place: content for place, content in messages.items() if place not in refused}
    what, instead = "the message of a failed item", "fail the item over the API, or pass no message"
    large, too_large = put_large(ports, messages, batches, name="message", what=what, instead=instead)
    refused |= too_large
    kept = {place: large.get(place, IN_ROW) for place in messages if place not in refused}
    rows: dict[int, dict[int, bytes]] = {}
    for place in kept:
        if place not in large:
            rows.setdefault(place.batch_id, {})[place.ordinal] = messages[place]
    for batch_id, contents in rows.items():
        batch = batches[batch_id]
        ports.parts.put_messages(batch_id, contents, again=batch.holds, expires_at=batch.expires_at)
    return kept, refused


def load_messages(ports: Ports, batch_id: int, notes: Iterable[FailureRow]) -> dict[int, KeptMessage]:
    """Read the messages of failures, by ordinal.

    Those that were not kept, are gone, or cannot be read are left out: one of them must not stop a
    redrive of the others.
    """
    kept = [note for note in notes if note.kept]
    rows = [note.ordinal for note in kept if note.kept == IN_ROW]
    keys = {note.ordinal: note.kept for note in kept if note.kept != IN_ROW}
    found = dict(ports.parts.messages(batch_id, rows)) if rows else {}
    objects = ports.claims.load(list(keys.values())) if keys else {}
    found |= {ordinal: objects[key] for ordinal, key in keys.items() if key in objects}
    messages: dict[int, KeptMessage] = {}
    for ordinal, content in found.items():
        with suppress(ValueError, LookupError, TypeError, AttributeError, InvalidRequest):
            messages[ordinal] = unpack(content)
    return messages


def put_large(
    ports: Ports,
    contents: Mapping[ItemPlace, bytes],
    batches: Mapping[int, Batch],
    *,
    name: str,
    what: str,
    instead: str,
) -> tuple[Mapping[ItemPlace, str], Mapping[ItemPlace, FaninError]]:
    """Store in the bucket what is too large for a row; of what is left, a row can hold each.

    Args:
        ports: the bucket.
        contents: of items, as JSON.
        batches: their batches.
        name: of the objects; a digest follows it, so that none overwrites another.
        what: each content is, for an error.
        instead: of a bucket, what a caller can do.

    Returns:
        The keys of what is in the bucket; and why others are not kept: this process has no bucket, or may not
        write to it, and a row cannot hold them.
    """
    now = ports.clock.now()
    keys = {
        place: claim_key(batches[place.batch_id], place.ordinal, f"{name}-{ids.digest(content)}", now)
        for place, content in contents.items()
        if len(content) > limits.MAX_KEPT_INLINE
    }
    objects = {key: contents[place] for place, key in keys.items()}
    try:
        for key in list(objects)[:1]:  # alone, since a process that may not write would be refused each
            ports.claims.put(key, objects.pop(key))
    except (NotConfigured, AccessDenied) as no_bucket:
        return {}, {
            place: RequestTooLarge(
                f"{what} has {len(contents[place])} bytes as JSON, and this process can keep"
                f" {limits.MAX_KEPT_IN_ROW}, because it has no bucket ({no_bucket}); name the bucket in the"
                f" environment and allow writing to it, {instead}"
            )
            for place in keys
            if len(contents[place]) > limits.MAX_KEPT_IN_ROW
        }
    if objects:
        ports.claims.put_all(objects)
    return keys, {}


class Failing(NamedTuple):
    """Items of a batch that are about to fail.

    Attributes:
        batch: the batch, which lives.
        notes: of its items.
        messages: of some of them, by ordinal, each as ``wire.messages.pack`` gives it.
    """

    batch: Batch
    notes: Sequence[FailureRow]
    messages: Mapping[int, bytes]


def write_notes(ports: Ports, failing: Collection[Failing]) -> Mapping[ItemPlace, FaninError]:
    """Write messages and notes; may be repeated.

    Returns:
        Why failures cannot be kept: this process cannot keep their messages, and their notes were not
        written.
    """
    messages = {
        ItemPlace(one.batch.batch_id, ordinal): content
        for one in failing
        if one.batch.keep is Keep.MESSAGE
        for ordinal, content in one.messages.items()
    }
    kept, refused = _keep_messages(ports, messages, {one.batch.batch_id: one.batch for one in failing})
    now = ports.clock.now()
    for batch, notes, _ in failing:
        latest = _latest(ports, batch, notes)
        rows = [
            note._replace(
                failed_at=max(now, latest.get(note.ordinal, 0) + 1),
                kept=kept.get(ItemPlace(batch.batch_id, note.ordinal), ""),
                totals=note.totals if batch.holds else (),
            )
            for note in notes
            if ItemPlace(batch.batch_id, note.ordinal) not in refused
        ]
        parts = ports.parts
        # The latest failure decides whether an item is held; in other batches the first one is its end.
        write = parts.update_failures if batch.holds else parts.put_failures
        write(batch.batch_id, rows, expires_at=batch.expires_at)
    return refused


def _latest(ports: Ports, batch: Batch, notes: Sequence[FailureRow]) -> Mapping[int, int]:
    """When held items failed before, ms; a later failure has a later time, whoever's clock it is."""
    if not batch.holds:
        return {}
    found = ports.parts.notes(batch.batch_id, [note.ordinal for note in notes])
    return {ordinal: note.failed_at for ordinal, note in found.items()}


PAGE: Final = 500
"""Failures whose messages are deleted together."""
PAGES: Final = 10
"""Pages that are deleted of a batch."""


def forget(ports: Ports, batch: Batch) -> None:
    """Delete the messages of the first 5,000 failures of a batch that was removed, and as many results.

    Those of others go with the end of the batch's lifetime: rows by their time to live, objects by the rules
    of the bucket. Notes stay until they expire. It may be repeated, and run twice at once.

    Args:
        ports: the rows and the bucket.
        batch: its row.
    """
    for first in range(0, min(batch.items, PAGES * PAGE) if batch.results else 0, PAGE):
        rows = ports.parts.results(batch.batch_id, range(first, first + PAGE))
        # Only the rows know the objects, so they go last: this may end in between, and is repeated then.
        if keys := [row.kept for row in rows.values() if row.kept]:
            ports.claims.delete(keys)
        ports.parts.delete_results(batch.batch_id, rows)
    cursor: str | None = None
    for _ in range(PAGES):
        notes, cursor = ports.parts.failures(batch.batch_id, cursor=cursor, limit=PAGE)
        ports.parts.delete_messages(batch.batch_id, [note.ordinal for note in notes if note.kept == IN_ROW])
        if keys := [note.kept for note in notes if note.kept not in {"", IN_ROW}]:
            ports.claims.delete(keys)
        if cursor is None:
            break


def last_attempts(ports: Ports, items: Iterable[str]) -> dict[str, RetryRow]:
    """The last attempts at items, as they were noted.

    Args:
        ports: the stores.
        items: ids; those that are malformed have no note.

    Returns:
        Item id → note; items without a note are left out. Empty if the notes cannot be read now: an item
        fails with less of a reason rather than not at all.
    """
    found: dict[str, RetryRow] = {}
    for batch_id, ordinals in _by_batch(items).items():
        with suppress(FaninError):
            rows = ports.parts.retries(batch_id, ordinals.values())
            found |= {item: rows[ordinal] for item, ordinal in ordinals.items() if ordinal in rows}
    return found


def _by_batch(items: Iterable[str]) -> dict[int, dict[str, int]]:
    """The ordinals of items, by batch and id; malformed ids are left out."""
    named: dict[int, dict[str, int]] = {}
    for item in items:
        with suppress(FaninError):
            block, ordinal = ids.parse_item(item)
            named.setdefault(block.batch_id, {})[item] = ordinal
    return named


_SENT = 16
"""Notes of what was sent that are read for one batch; most batches have one for each of their queues."""


def sent_queues(ports: Ports, items: Iterable[str]) -> dict[str, str]:
    """The queues to which the messages of some items were sent.

    Args:
        ports: the stores.
        items: ids; malformed ones have no queue.

    Returns:
        Item id → URL or ARN. Left out are items without a note, those that were sent to several queues, and
        all of a batch whose notes cannot be read now: then a redrive must name the queue.
    """
    found: dict[str, str] = {}
    for batch_id, ordinals in _by_batch(items).items():
        with suppress(FaninError):
            sent, more = ports.parts.sent(batch_id, upto=max(ordinals.values()), limit=_SENT)
            for item, ordinal in ordinals.items():
                queues = {row.queue for row in sent if row.start <= ordinal < row.stop}
                if len(queues) == 1 and not more:
                    found[item] = queues.pop()
    return found
