"""Results of items: stored before their items are marked, and read for items that are done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from fanin.app.failures import put_large
from fanin.app.ledger.reading import Reading, ordinal_of
from fanin.app.ports import Ports
from fanin.app.ports.batches import ItemPlace
from fanin.app.ports.parts import ResultRow
from fanin.domain import limits
from fanin.domain.batch import Batch
from fanin.domain.marks import Done
from fanin.domain.reports import ItemResult, Results
from fanin.errors import FaninError, InvalidRequest
from fanin.wire.marks import result_json

_PAGE_BYTES: Final = 3 * 1024 * 1024
"""Bytes of JSON after which a page of results ends; Lambda answers with up to 6 MB, where text is escaped."""


def keep(ports: Ports, batch: Batch, done: Mapping[int, Done]) -> Mapping[int, FaninError]:
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


class ReadingResults(Reading):
    """Reads the results of batches."""

    def results(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Results:
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
        found, size = list[ItemResult](), 0
        for ordinal in sorted(rows):
            row = rows[ordinal]
            content = self.ports.claims.load([row.kept]).get(row.kept) if row.kept else row.content
            if not content:
                continue  # the rules of the bucket have deleted it
            size += len(content)
            if found and size > _PAGE_BYTES:
                return Results(tuple(found), str(ordinal))
            found.append(ItemResult(ordinal, row.item, json.loads(content), keys.get(ordinal, "")))
        return Results(tuple(found), None if stop >= batch.items else str(stop))
