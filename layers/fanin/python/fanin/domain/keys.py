"""Items that have a key: a name of the caller's, which is one item of the batch, whoever adds it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from fanin.errors import InvalidRequest

MAX_KEY: Final = 512
"""Bytes of a key in UTF-8."""
MAX_KEYS: Final = 98
"""Keys of one call: one transaction of 100 rows has them, the batch, and a row that lists them by ordinal."""
MAX_DIGEST: Final = 64
"""Characters of the digest of a payload."""


@dataclass(frozen=True, slots=True)
class ItemKey:
    """A key that is to be an item.

    Attributes:
        key: text of 1 to 512 bytes in UTF-8.
        payload: a digest of what the item stands for, which tells one payload from another; may be empty.
    """

    key: str
    payload: str = ""


@dataclass(frozen=True, slots=True)
class AddKeys:
    """A request to add keys; see ``Ledger.add_keys``."""

    keys: tuple[ItemKey, ...]
    item: str | None = None


@dataclass(frozen=True, slots=True)
class KeyedItem:
    """The item of a key.

    Attributes:
        key: as it was given.
        item: the id of the item.
        added: whether this call has added it.
        done: whether it is done. A range that was marked as a whole may hide that.
        differs: whether it was added with another payload. The first one stays.
        send: whether the caller should send its message: it has added the item, or another delivery of the
            same message has, and no note says that it was sent; or whoever adds is no item, and the item is
            not done.
    """

    key: str
    item: str
    added: bool = False
    done: bool = False
    differs: bool = False
    send: bool = False


@dataclass(frozen=True, slots=True)
class KeyedItems:
    """The items of the keys of a call, in their order."""

    items: tuple[KeyedItem, ...]


def payload_digest(body: str) -> str:
    """The digest of a message's body, for ``ItemKey``."""
    return blake2b(body.encode(), digest_size=8).hexdigest()


def checked_key(key: object) -> str:
    """Return a key, if it is one.

    Raises:
        InvalidRequest: it is not text of 1 to 512 bytes in UTF-8.
    """
    text = str.__str__(key) if isinstance(key, str) else ""  # of an enumeration's member, its value
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            "the key of an item has one half of a surrogate pair, which is not text; leave it out"
        ) from error
    if not 1 <= size <= MAX_KEY:
        found = f"of {size} bytes" if isinstance(key, str) else f"of type {type(key).__name__}"
        raise InvalidRequest(
            f"the key of an item must be text of 1 to {MAX_KEY} bytes in UTF-8, and one is {found}; take a"
            " digest of what is longer"
        )
    return text
