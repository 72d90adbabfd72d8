"""Whether an id is one that this service gave: who makes one up is refused before anything is written."""

from __future__ import annotations

from fanin.domain.batch import Batch
from fanin.domain.ids import Block
from fanin.errors import InvalidItemId


def check_issued(block: Block, batch: Batch) -> None:
    """Compare a block with its batch.

    Args:
        block: as parsed from an id.
        batch: its batch; a row read before the block was added does not have its items yet.

    Raises:
        InvalidItemId: the check is not what the batch's salt gives, or the batch has no such items. An
            item past the last one has no bit, and must not be written.
    """
    if not block.genuine(batch.salt) or block.stop > batch.items:
        raise InvalidItemId(f"group {block.prefix} was not issued by this service; nothing was done")
