"""Checks that an id was issued by this service; forged ones are refused before anything is written."""

from __future__ import annotations

from fanin.domain.batch import Batch
from fanin.domain.ids import Block
from fanin.errors import InvalidItemId


def check_issued(block: Block, batch: Batch) -> None:
    """Compare a block with its batch.

    Args:
        block: as parsed from an id.
        batch: its batch; the row must be recent enough to count the items of the block.

    Raises:
        InvalidItemId: the check does not follow from the batch's salt, or the batch has no such items. An
            item past the last one has no bit, and must not be written.
    """
    if not block.genuine(batch.salt) or block.stop > batch.items:
        raise InvalidItemId(
            f"group {block.prefix} was not issued by this service, and nothing was done;"
            " send item ids exactly as you got them"
        )
