"""Receipts of work taken from a buffer: opaque text for an item and a delivery of its message."""

from __future__ import annotations

import base64
import json
from typing import Final, NamedTuple

from fanin.domain import ids
from fanin.errors import InvalidItemId, InvalidRequest

_LONGEST: Final = 4096


class Ordinal(NamedTuple):
    """The place of an item: its batch, and its ordinal there."""

    batch_id: int
    number: int


class Receipt(NamedTuple):
    """A receipt, decoded.

    Attributes:
        batch_id: batch of the item.
        item: its id.
        handle: receipt handle of the queue, which removes the message.
    """

    batch_id: int
    item: str
    handle: str


def write(item: str, handle: str) -> str:
    """Make a receipt."""
    return base64.urlsafe_b64encode(json.dumps([item, handle]).encode()).decode().rstrip("=")


def read(token: str) -> Receipt:
    """Read a receipt. Whether this service issued its item is not checked.

    Raises:
        InvalidRequest: the text is not a receipt.
    """
    try:
        if len(token) <= _LONGEST:
            text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            item, handle = json.loads(text)
            if isinstance(item, str) and isinstance(handle, str) and (at := ordinal(item)):
                return Receipt(at.batch_id, item, handle)
    except (ValueError, TypeError, RecursionError):  # the last from a text of nested brackets
        pass
    raise InvalidRequest(
        f"receipt {token[:32]!r} is not one that take returned, and nothing was done;"
        " send receipts exactly as you got them"
    )


def ordinal(item: str) -> Ordinal | None:
    """The place of an item; None if the text is not an item id."""
    try:
        block, number = ids.parse_item(item)
    except InvalidItemId:
        return None
    return Ordinal(block.batch_id, number)
