"""Receipts of work taken from a buffer: opaque text that names an item and the delivery of its message."""

from __future__ import annotations

import base64
import json
from typing import Final, NamedTuple

from fanin.domain import ids
from fanin.errors import InvalidItemId, InvalidRequest

_LONGEST: Final = 4096


class Ordinal(NamedTuple):
    """Where an item stands: its batch, and its number there."""

    batch_id: int
    number: int


class Receipt(NamedTuple):
    """What a receipt says.

    Attributes:
        batch_id: batch of the item.
        item: its id.
        handle: of the queue, to remove the message by.
    """

    batch_id: int
    item: str
    handle: str


def write(item: str, handle: str) -> str:
    """Make a receipt."""
    return base64.urlsafe_b64encode(json.dumps([item, handle]).encode()).decode().rstrip("=")


def read(token: str) -> Receipt:
    """Read a receipt; whether its item was issued by this service is not checked.

    Raises:
        InvalidRequest: it is none.
    """
    try:
        if len(token) <= _LONGEST:
            text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            item, handle = json.loads(text)
            if isinstance(item, str) and isinstance(handle, str) and (at := ordinal(item)):
                return Receipt(at.batch_id, item, handle)
    except (ValueError, TypeError):
        pass  # it was text of a caller, so anything at all
    raise InvalidRequest(f"receipt {token[:32]!r} is not one that take gave; nothing was done")


def ordinal(item: str) -> Ordinal | None:
    """Where an item stands; None for what is no item id."""
    try:
        block, number = ids.parse_item(item)
    except InvalidItemId:
        return None
    return Ordinal(block.batch_id, number)
