"""Keys in the bucket: each says how long its object is kept, and to which item of which batch it belongs."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.domain.batch import Batch

_DAY_MS: Final = 86_400_000


def claim_key(batch: Batch, ordinal: int, name: str, now: int) -> str:
    """The key of an object of an item in the bucket, which keeps it at least as long as the batch's row.

    The rules of the bucket do not depend on the setting ``lifetime``: it may be lowered while batches run.
    """
    left = batch.expires_at * 1000 - now
    kept = next((days for days in names.CLAIM_DAYS if days * _DAY_MS >= left), names.CLAIM_DAYS[-1])
    return f"{names.CLAIM_PREFIX.format(kept)}{batch.batch_id}/{ordinal}/{name}"
