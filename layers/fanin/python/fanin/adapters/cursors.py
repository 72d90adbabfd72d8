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
_HIGHEST: Final = 2**53


def listing_of(what: str, text: str) -> str:
    """Name a listing after a caller's text, by its digest: the text itself may be too long for a cursor."""
    return f"{what} {digest(text)}"


def encode(listing: str, *position: int) -> str:
    """Make the cursor of a position within the named listing."""
    return _pack([listing, *position])


def encode_name(listing: str, name: str) -> str:
    """Make the cursor of a record, by its name, within the named listing."""
    return _pack([listing, name])


def decode_name(listing: str, cursor: str, prefix: str = "") -> str:
    """Read the name back.

    Args:
        listing: the name it was made with.
        cursor: text from a caller; not validated yet.
        prefix: what every name of this listing begins with. DynamoDB fails a query that starts elsewhere.

    Raises:
        InvalidRequest: the text is not a cursor of this listing.
    """
    made_for, *rest = _unpack(cursor)
    if made_for != listing or len(rest) != 1 or not isinstance(rest[0], str) or not rest[0]:
        raise _foreign(cursor)
    if not rest[0].startswith(prefix) or _SURROGATES.search(rest[0]):
        raise _foreign(cursor)
    return rest[0]


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
    genuine = name == listing and len(position) in sizes
    if not genuine or not all(type(part) is int and 0 <= part < _HIGHEST for part in position):
        raise _foreign(cursor)
    return tuple(position)


def _pack(parts: list[object]) -> str:
    text = json.dumps(parts, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


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
