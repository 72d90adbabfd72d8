"""What items leave: failures, a page of them, one with its message, what they have in common; and results.

Held items are released here: given up, so that they count as done and their batch can complete. Results are
stored before their items are marked, and read for items that are done.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from fanin.app.failures import load_messages, put_large
from fanin.app.ledger.failed import READS
from fanin.app.ledger.known_batches import all_of
from fanin.app.ledger.reading import AROUND, Reading, ordinal_of
from fanin.app.ledger.settle import brought
from fanin.app.ports import Ports
from fanin.app.ports.batches import ItemPlace
from fanin.app.ports.parts import REDRIVE, FailureRow, Redriven, ResultRow
from fanin.domain import ids, limits, reports
from fanin.domain.batch import Batch, Kind
from fanin.domain.failures import MAX_ERROR, error_of
from fanin.domain.marks import Done
from fanin.domain.redrives import Selection
from fanin.errors import FailureNotFound, FaninError, InvalidRequest
from fanin.wire.marks import result_json

_PAGE_BYTES: Final = 3 * 1024 * 1024
"""Bytes of JSON after which a page of results ends; Lambda answers with up to 6 MB, where text is escaped."""


def keep_results(ports: Ports, batch: Batch, done: Mapping[int, Done]) -> Mapping[int, FaninError]:
    """Store results of items that are about to be marked; a repeat changes nothing.

    A crash before the items are marked leaves results that nobody reads, and that stay: the first result
    that was stored for an item is its result.

    Args:
        ports: the rows and the bucket.
        batch: the batch, which keeps results.
        done: marks with a result, by the ordinals of their items.

    Returns:
        Why results cannot be kept, by ordinal: they are not JSON, or too large.
    """
    refused: dict[int, FaninError] = {}
    contents: dict[ItemPlace, bytes] = {}
    for ordinal, mark in done.items():
        try:
            contents[ItemPlace(batch.batch_id, ordinal)] = result_json(mark.result)
        except InvalidRequest as error:
            refused[ordinal] = error
    batches = {batch.batch_id: batch}
    instead = "or acknowledge over the API"
    large, too_large = put_large(ports, contents, batches, name="result", what="the result", instead=instead)
    refused |= {place.ordinal: why for place, why in too_large.items()}
    rows = [
        ResultRow(at.ordinal, done[at.ordinal].item, b"" if at in large else content, large.get(at, ""))
        for at, content in contents.items()
        if at not in too_large
    ]
    if rows:
        ports.parts.put_results(batch.batch_id, rows, expires_at=batch.expires_at)
    return refused


class Leaving(Reading):
    """Reads the failures and results of items, and gives up those that are held."""

    def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> reports.Failures:
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        batch = self._known.current(batch_id)
        redriven = self._shows_redrives(batch)
        notes, after = self._part(batch, cursor, limit, each=int(redriven) + bool(batch.keyed))
        return reports.Failures(self._shown(batch, notes), after)

    def failure(self, batch_id: int, ordinal: int) -> reports.FailedMessage:
        limits.whole("the ordinal of an item", ordinal, 0, ids.MAX_ITEMS - 1)
        batch = self._known.current(batch_id)
        confirmed = self._that_count(batch, list(self.ports.parts.notes(batch_id, [ordinal]).values()))
        if not confirmed:
            raise FailureNotFound(
                f"item {ordinal} of batch {batch_id} has not failed; `fanin failures` lists those that have"
            )
        (failure,) = self._shown(batch, confirmed)
        messages = load_messages(self.ports, batch_id, list(confirmed))
        return reports.FailedMessage(failure, messages.get(ordinal))

    def errors(self, batch_id: int, *, cursor: str | None = None) -> reports.Errors:
        batch = self._known.current(batch_id)
        notes, after = self._part(batch, cursor, self.rows, each=0)
        return reports.Errors(reports.by_error(map(_group, notes)), after)

    def release(
        self, batch_id: int, selection: Selection | None = None, *, cursor: str | None = None
    ) -> reports.ReleasedItems:
        """Mark one page of the selected held items as failed; may be repeated.

        An item that is acknowledged or redriven at the same time is decided by whoever clears its bit first.
        An item that a redrive has taken is in a queue, and not held: it is left to its consumer.

        Raises:
            InvalidRequest: the batch holds no items, or the selection or the cursor is invalid.
            Throttled, ServiceUnavailable: some items may be marked; repeat the call.
        """
        selection = selection or Selection()
        selection.check()
        batch = self._known.current(batch_id)
        if not batch.holds:
            raise InvalidRequest(
                f"batch {batch_id} holds no items: an item that fails in it is done; open a batch with"
                ' on_failure="hold" to hold them'
            )
        if batch.state.terminal:
            return reports.ReleasedItems(self._held.counted(batch))
        left = self.rows - AROUND - READS
        each, released, after = self._held.most_reads(batch), 0, cursor
        while True:
            limit = max(1, min(limits.MAX_PAGE, left // each))
            notes, after = self.ports.parts.failures(batch_id, cursor=after, limit=limit)
            chosen = [note for note in notes if selection.takes(note.ordinal, note.reason)]
            released += self._fail(batch, self._held.among(batch, chosen).free)
            left -= max(1, len(notes)) + self._held.reads(batch, [note.ordinal for note in chosen])
            if after is None or left < each:
                break
        batch = self._held.counted(self._known.cached(batch_id) or batch)
        return reports.ReleasedItems(batch, released, None if batch.state.terminal else after)

    def results(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> reports.Results:
        """Read the results of the next items, as far as these are done, and did not fail."""
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        batch = self._known.current(batch_id)
        if not batch.results:
            raise InvalidRequest(f"batch {batch_id} keeps no results: open it with results=True")
        start = ordinal_of(cursor)
        # Each item takes its result, its word where no neighbour has it, and its key.
        stop = min(batch.items, start + min(limit, self.rows // (3 if batch.keyed else 2)))
        done = set(range(start, stop)) - self.pending(batch_id, start, stop)
        rows = self.ports.parts.results(batch_id, done - self._failed.among(batch_id, done))
        keys = self.ports.parts.keys_of(batch_id, rows) if batch.keyed else {}
        found, size = list[reports.ItemResult](), 0
        for ordinal in sorted(rows):
            row = rows[ordinal]
            content = self.ports.claims.load([row.kept]).get(row.kept) if row.kept else row.content
            if not content:
                continue  # the rules of the bucket have deleted it
            size += len(content)
            if found and size > _PAGE_BYTES:
                return reports.Results(tuple(found), str(ordinal))
            found.append(reports.ItemResult(ordinal, row.item, json.loads(content), keys.get(ordinal, "")))
        return reports.Results(tuple(found), None if stop >= batch.items else str(stop))

    def _part(
        self, batch: Batch, cursor: str | None, limit: int, *, each: int
    ) -> tuple[Mapping[FailureRow, bool], str | None]:
        """Read notes that count up to a limit, or until another could take more rows than are left.

        Each comes with whether its item is held.

        A note takes the word of its item; one that may be held takes those above it, too, and the mark of a
        redrive. Neighbours share words, so it is only known afterwards how many rows notes have taken.

        Args:
            batch: the row.
            cursor: of the part before.
            limit: most notes.
            each: rows that the caller reads for each note that counts.
        """
        left = self.rows - 1  # the batch
        most = each + (self._held.most_reads(batch) + 1 if batch.may_hold_more else 2)
        found: dict[FailureRow, bool] = {}
        while True:
            asked = max(1, min(limit, left // most))
            notes, cursor = self.ports.parts.failures(batch.batch_id, cursor=cursor, limit=asked)
            found |= self._that_count(batch, notes)
            limit -= len(notes)
            ordinals = [note.ordinal for note in notes]
            left -= max(1, len(notes)) * (1 + each) + len({n // self._tree.width for n in ordinals})
            if batch.may_hold_more:
                left -= self._held.reads(batch, ordinals)
            if cursor is None or limit <= 0 or left < most:
                return found, cursor

    def _that_count(self, batch: Batch, notes: Sequence[FailureRow]) -> Mapping[FailureRow, bool]:
        """The notes of items that have failed, or are held; and whether they are held."""
        failed = {note.ordinal for note in self._failed.confirmed(batch, notes)}
        others = [note for note in notes if note.ordinal not in failed] if batch.may_hold_more else []
        held = {note.ordinal for note in self._held.among(batch, others).free} if others else set()
        return {note: note.ordinal in held for note in notes if note.ordinal in failed | held}

    def _shows_redrives(self, batch: Batch) -> bool:
        return self._redrives and batch.kind is Kind.BATCH  # what a pattern sends has no redrive

    def _shown(self, batch: Batch, notes: Mapping[FailureRow, bool]) -> tuple[reports.FailedItem, ...]:
        ordinals = [note.ordinal for note in notes]
        redriven: Mapping[int, Redriven] = {}
        if notes and self._shows_redrives(batch):
            redriven = self.ports.parts.redriven(batch.batch_id, ordinals)
        keys = self.ports.parts.keys_of(batch.batch_id, ordinals) if batch.keyed else {}
        return tuple(
            _failed_item(note, redriven.get(note.ordinal), held=held, key=keys.get(note.ordinal, ""))
            for note, held in notes.items()
        )

    def _fail(self, batch: Batch, notes: list[FailureRow]) -> int:
        """Mark items as failed; each brings to the totals what its failure brought when it was held."""
        masks = self._bits_of(batch, (note.ordinal for note in notes))
        bringing = brought(batch, ((note.ordinal, dict(note.totals)) for note in notes), self._tree)
        cleared = all_of(self.try_to_settle(masks, failed=masks, brought=bringing))
        if masks:
            self._known.touch(self._known.cached(batch.batch_id) or batch)
        return sum((masks[key] & found.first).bit_count() for key, found in cleared.items())


def _failed_item(note: FailureRow, redriven: Redriven | None, *, held: bool, key: str) -> reports.FailedItem:
    what = note.ordinal, note.item, note.reason, note.failed_at, note.attempts, note.source, bool(note.kept)
    name = redriven and redriven.redrive.removeprefix(REDRIVE)
    return reports.FailedItem(*what, redriven=name, held=held, key=key)


def _group(note: FailureRow) -> reports.ErrorGroup:
    error, example, kept = error_of(note.reason), note.reason[:MAX_ERROR], int(bool(note.kept))
    return reports.ErrorGroup(error, 1, example, note.ordinal, note.failed_at, kept)
