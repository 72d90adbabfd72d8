"""Claim checks: where to upload a payload that is too large for a message, and the key it gets in the bucket.

Each key says how long its object is kept, and to which item of which batch it belongs.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fanin import names
from fanin.domain.batch import Batch


@dataclass(frozen=True, slots=True)
class ClaimCheckRequest:
    """A request to upload a payload that is too large for a reply.

    Attributes:
        item: the item id of the message that is replied to.
        size: bytes.
        content_type: of the payload.
    """

    item: str
    size: int
    content_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """Where to upload a payload, before the reply names it.

    Attributes:
        key: the reply names it as its ``claim``.
        url: accepts a PUT of the payload, with ``headers``.
        headers: to send with the payload.
        expires_at: when the URL expires.
    """

    key: str
    url: str
    headers: Mapping[str, str]
    expires_at: int


_DAY_MS = 86_400_000


def claim_key(batch: Batch, ordinal: int, name: str, now: int) -> str:
    """The key of an object of an item in the bucket, which keeps it at least as long as the batch's row.

    The rules of the bucket do not depend on the setting ``lifetime``: it may be lowered while batches run.
    """
    left = batch.expires_at * 1000 - now
    kept = next((days for days in names.CLAIM_DAYS if days * _DAY_MS >= left), names.CLAIM_DAYS[-1])
    return f"{names.CLAIM_PREFIX.format(kept)}{batch.batch_id}/{ordinal}/{name}"
