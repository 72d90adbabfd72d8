"""Cursors: where a listing continues, as opaque text that only the same listing accepts."""

import base64
import json
import re
from collections.abc import Collection
from typing import Any, Final

from fanin.domain.ids import digest
from fanin.errors import InvalidRequest

_LONGEST: Final = 1024
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
"""Halves of characters, which JSON can name and no table can store."""


def listing_of(what: str, text: str) -> str:
    """Name a listing after a caller's text, by its digest: the text itself may be too long for a cursor."""
    return f"{what} {digest(text)}"


def encode(listing: str, *position: int | str) -> str:
    """Make the cursor of a position within the named listing; that of a record is its name."""
    text = json.dumps([listing, *position], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_name(listing: str, cursor: str, prefix: str = "") -> str:
    """Read the name back.

    Args:
        listing: the name it was made with.
        cursor: text from a caller; not validated yet.
        prefix: what every name of this listing begins with. DynamoDB fails a query that starts elsewhere.

    Raises:
        InvalidRequest: the text is not a cursor of this listing.
    """
    match _unpack(cursor):
        case [made_for, str(name)] if made_for == listing and name and name.startswith(prefix):
            if not _SURROGATES.search(name):
                return name
    raise _foreign(cursor)


def decode(listing: str, cursor: str, sizes: Collection[int]) -> tuple[int, ...]:
    """Read the position back.

    Args:
        listing: the name it was made with.
        cursor: text from a caller; not validated yet.
        sizes: how many numbers a position of this listing may have.

    Raises:
        InvalidRequest: the text is not a cursor of this listing.
    """
    name, *position = _unpack(cursor)
    numbers = all(type(part) is int and 0 <= part < 2**53 for part in position)
    if name != listing or len(position) not in sizes or not numbers:
        raise _foreign(cursor)
    return tuple(position)


def _unpack(cursor: str) -> list[Any]:
    try:
        if len(cursor) <= _LONGEST:
            text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            parts = json.loads(text)
            if isinstance(parts, list) and parts:
                return parts
    except (ValueError, TypeError, RecursionError):  # the last from a text of nested brackets
        pass
    raise _foreign(cursor)


def _foreign(cursor: str) -> InvalidRequest:
    return InvalidRequest(f"cursor {cursor[:64]!r} is not from this listing; start again without a cursor")
