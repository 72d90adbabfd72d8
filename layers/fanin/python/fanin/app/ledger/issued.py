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
        InvalidItemId: the check does not match the batch's salt, or the block ends past the batch's last
            item, where no bit may be written.
    """
    if not block.genuine(batch.salt) or block.stop > batch.items:
        raise InvalidItemId(
            f"group {block.prefix} was not issued by this service; send item ids exactly as you got them"
        )
