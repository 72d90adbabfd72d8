"""The JSON form of what the ledger reports of batches; see ``wire``."""

from __future__ import annotations

from fanin.domain.reports import (
    Batches,
    Expired,
    FailedItem,
    Failures,
    Missing,
    MissingRange,
    Progress,
    Verdict,
)
from fanin.wire.ledger import Json, decode_batch, encode_batch


def encode_progress(progress: Progress) -> Json:
    """Write the batch with the bounds of its done items beside it."""
    return encode_batch(progress.batch) | {"done_min": progress.done_min, "done_max": progress.done_max}


def decode_progress(body: Json) -> Progress:
    return Progress(decode_batch(body), body["done_min"], body["done_max"])


def encode_missing(page: Missing) -> Json:
    ranges = [{"from": span.start, "to": span.stop, "id": span.id} for span in page.ranges]
    return {"ranges": ranges, "cursor": page.cursor}


def decode_missing(body: Json) -> Missing:
    ranges = tuple(MissingRange(span["from"], span["to"], span["id"]) for span in body["ranges"])
    return Missing(ranges, body["cursor"])


def encode_failures(page: Failures) -> Json:
    failures = [{"ordinal": f.ordinal, "item": f.item, "reason": f.reason} for f in page.failures]
    return {"failures": failures, "cursor": page.cursor}


def decode_failures(body: Json) -> Failures:
    failures = tuple(FailedItem(f["ordinal"], f["item"], f["reason"]) for f in body["failures"])
    return Failures(failures, body["cursor"])


def encode_batches(page: Batches) -> Json:
    return {"batches": [encode_batch(batch) for batch in page.batches], "cursor": page.cursor}


def decode_batches(body: Json) -> Batches:
    return Batches(tuple(decode_batch(batch) for batch in body["batches"]), body["cursor"])


def encode_expired(expired: Expired) -> Json:
    return {"batches": expired.batches, "items": expired.items}


def decode_expired(body: Json) -> Expired:
    return Expired(body["batches"], body["items"])


def encode_verdict(verdict: Verdict) -> Json:
    return {
        "batch": encode_batch(verdict.batch),
        "pending": verdict.pending,
        "disagreements": list(verdict.disagreements),
        "repaired": verdict.repaired,
        "cursor": verdict.cursor,
    }


def decode_verdict(body: Json) -> Verdict:
    return Verdict(
        batch=decode_batch(body["batch"]),
        pending=body["pending"],
        disagreements=tuple(body["disagreements"]),
        repaired=body["repaired"],
        cursor=body["cursor"],
    )
