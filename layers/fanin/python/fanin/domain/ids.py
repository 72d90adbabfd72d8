"""Identifiers: 53-bit batch ids, group ids that encode their range, and item ids.

A group id is a version 8 UUID (RFC 9562) whose 122 free bits hold three fields, from the top: 40 bits first
ordinal, 32 bits count, 50 bits keyed check. So an item id carries all that is needed to find its bit, and an
id that the service never issued fails the check.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple, overload
from uuid import UUID

from fanin.domain import limits
from fanin.errors import InvalidItemId, InvalidRequest

MAX_BATCH_ID: Final = 2**53 - 1
MAX_ITEMS: Final = 2**40
"""How many items a batch can hold in all."""
MAX_COUNT: Final = 2**32 - 1
"""How many items one call can add."""
SALT_BYTES: Final = 16

_EPOCH_MS: Final = 1_735_689_600_000  # 2025-01-01, so that 41 bits of milliseconds last until 2094
_RANDOM_BITS: Final = 12
_CHECK_BITS: Final = 50
_INDICES: Final = re.compile(r"(?:(?:0|[1-9][0-9]{0,9}),)*(?:0|[1-9][0-9]{0,9})")
_BATCH_ID: Final = re.compile(r"0|[1-9][0-9]{0,15}")


def quoted(text: str) -> str:
    """The beginning of what should be an id, in ASCII: an answer may have to quote ten thousand of them."""
    return ascii(text[:96])[:96]


def batch_id(now_ms: int, random_bits: int) -> int:
    """Make a batch id: 41 bits of milliseconds, then 12 random bits; below 2^53, so exact in JSON."""
    return ((now_ms - _EPOCH_MS) % (1 << 41)) << _RANDOM_BITS | random_bits % (1 << _RANDOM_BITS)


def made_at(batch: int) -> int:
    """When a batch id was made, in milliseconds since the epoch."""
    return (batch >> _RANDOM_BITS) + _EPOCH_MS


def parse_batch_id(text: str) -> int:
    """Read a batch id from its decimal form.

    Raises:
        InvalidRequest: the text is not a whole number below 2^53.
    """
    if _BATCH_ID.fullmatch(text) and (value := int(text)) <= MAX_BATCH_ID:
        return value
    raise InvalidRequest(f"batch id {text[:64]!r} is not a whole number from 0 to 2^53 - 1")


class Block(NamedTuple):
    """A block of items that were added together: ordinals first ≤ i < first + size.

    Attributes:
        batch_id: the batch.
        first: ordinal of the block's first item.
        size: number of items.
        check: 50 bits that prove that the service issued it.
    """

    batch_id: int
    first: int
    size: int
    check: int

    @property
    def stop(self) -> int:
        return self.first + self.size

    @property
    def group_id(self) -> str:
        """The UUID that encodes the block."""
        value = (self.first << 32 | self.size) << _CHECK_BITS | self.check
        high, middle, low = value >> 74, value >> 62 & 0xFFF, value & (1 << 62) - 1
        return str(UUID(int=high << 80 | 8 << 76 | middle << 64 | 2 << 62 | low))

    @property
    def prefix(self) -> str:
        """The common prefix of the block's item ids, without the last colon: ``<batch id>:<group id>``."""
        return f"{self.batch_id}:{self.group_id}"

    def genuine(self, salt: bytes) -> bool:
        """Whether the check is the one that follows from the batch's salt."""
        return self.check == _check(self.batch_id, self.first, self.size, salt)


def _check(batch: int, first: int, count: int, salt: bytes) -> int:
    message = batch.to_bytes(8, "big") + first.to_bytes(5, "big") + count.to_bytes(4, "big")
    digest = blake2b(message, digest_size=7, key=salt).digest()
    return int.from_bytes(digest, "big") >> 56 - _CHECK_BITS


def issue(batch: int, first: int, count: int, salt: bytes) -> Block:
    """Make the block of ``count`` items from ordinal ``first``, with its keyed check."""
    return Block(batch, first, count, _check(batch, first, count, salt))


def parse_prefix(prefix: str) -> Block:
    """Read ``<batch id>:<group id>``; the check is read, not verified.

    Raises:
        InvalidItemId: the text does not have this form.
    """
    batch, colon, group = prefix.partition(":")
    try:
        uuid = UUID(group)
        value = parse_batch_id(batch)
    except (ValueError, InvalidRequest):
        uuid, value = UUID(int=0), -1
    if not colon or value < 0 or str(uuid) != group or uuid.version != 8:  # noqa: PLR2004
        raise InvalidItemId(
            f"{quoted(prefix)} is not <batch id>:<group id>; send item ids as the service gave them:"
            " <batch id>:<group id>:<index>"
        )
    bits = uuid.int
    packed = bits >> 80 << 74 | (bits >> 64 & 0xFFF) << 62 | bits & (1 << 62) - 1
    block = Block(value, packed >> 82, packed >> _CHECK_BITS & (1 << 32) - 1, packed & (1 << _CHECK_BITS) - 1)
    if block.size == 0:
        raise InvalidItemId(f"{quoted(prefix)} has a size of 0; send item ids as the service gave them")
    return block


def parse_indices(block: Block, indices: Sequence[str]) -> list[int]:
    """Read the indices of items of one block, and turn them into ordinals.

    Raises:
        InvalidItemId: an index is not a canonical whole number, or not below the size of the block.
    """
    joined = ",".join(indices)
    if joined.count(",") < len(indices) and _INDICES.fullmatch(joined):
        first = block.first
        ordinals = [first + int(index) for index in indices]
        if max(ordinals) < block.stop:
            return ordinals
    index = re.compile(r"0|[1-9][0-9]{0,9}")
    wrong = next(one for one in indices if not index.fullmatch(one) or int(one) >= block.size)
    raise InvalidItemId(
        f"item id {block.prefix}:{limits.cleaned(wrong[:32])} does not end in a whole number"
        f" from 0 to {block.size - 1}, the items of its group"
    )


def parse_item(item: str) -> tuple[Block, int]:
    """Read one item id; the check is read, not verified.

    Returns:
        The item's block, and its ordinal in the batch.

    Raises:
        InvalidItemId: the text is not an item id.
    """
    prefix, colon, index = str(item).rpartition(":")
    if not colon:
        raise InvalidItemId(f"item id {quoted(str(item))} is not <batch id>:<group id>:<index>")
    block = parse_prefix(prefix)
    (ordinal,) = parse_indices(block, [index])
    return block, ordinal


def batch_uuid(batch: int) -> str:
    """The UUID form of a batch id, for the original estimated API: version 8, id in the low bits."""
    return str(UUID(int=8 << 76 | 2 << 62 | batch))


def parse_batch_uuid(text: str) -> int:
    """Read a batch id from its UUID form.

    Raises:
        InvalidRequest: the text is not a UUID that ``batch_uuid`` made.
    """
    try:
        value = UUID(text).int & (1 << 62) - 1
    except ValueError:
        value = -1
    if not 0 <= value <= MAX_BATCH_ID or batch_uuid(value) != text.lower():
        raise InvalidRequest(f"batch id {text[:64]!r} is not a UUID that this service issued")
    return value


@dataclass(frozen=True)
class ItemIds(Sequence[str]):
    """Ids of some items of a group, made on demand, as ``range`` makes its numbers.

    Attributes:
        prefix: ``<batch id>:<group id>``.
        indices: of the items.
    """

    prefix: str
    indices: range

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[str]:
        prefix = self.prefix
        return (f"{prefix}:{index}" for index in self.indices)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "ItemIds": ...
    def __getitem__(self, index: int | slice) -> "str | ItemIds":
        indices = self.indices[index]
        if isinstance(indices, int):
            return f"{self.prefix}:{indices}"
        return ItemIds(self.prefix, indices)


@dataclass(frozen=True)
class Group(Sequence[str]):
    """The item ids that adding items returns, made on demand: a group of a billion takes no memory.

    Attributes:
        batch_id: the batch.
        id: the group id, a UUID.
        upto: number of items; their ids are ``<batch_id>:<id>:0`` to ``<batch_id>:<id>:<upto - 1>``.
        again: whether an earlier call with the same key has surely added them.
        sent: whether that is so, and a note says that their messages were sent; only looked up for items that
            an item has added.
    """

    batch_id: int
    id: str
    upto: int
    again: bool = field(default=False, compare=False)
    sent: bool = field(default=False, compare=False)

    def __len__(self) -> int:
        return self.upto

    def __iter__(self) -> Iterator[str]:
        return iter(self[:])

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> ItemIds: ...
    def __getitem__(self, index: int | slice) -> str | ItemIds:
        return ItemIds(self.prefix, range(self.upto))[index]

    @property
    def prefix(self) -> str:
        """``<batch id>:<group id>``: names the whole group, where a call takes a range."""
        return f"{self.batch_id}:{self.id}"


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


def digest(content: str | bytes, size: int = 16) -> str:
    """A short name for a content, of ``size`` bytes as hexadecimal digits."""
    data = content.encode() if isinstance(content, str) else content
    return blake2b(data, digest_size=size).hexdigest()


def payload_digest(body: str) -> str:
    """The digest of a message's body, for ``ItemKey``."""
    return digest(body, 8)


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
