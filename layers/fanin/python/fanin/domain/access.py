"""Who makes a call, what they may do, and the idempotency keys that belong to them."""

import json
from enum import StrEnum
from typing import Final, NamedTuple, Self

from fanin.domain import ids, limits
from fanin.errors import InvalidRequest

MAX_NAME: Final = 256
"""Bytes of a principal's name in a batch row, in UTF-8."""

NOBODY: Final = "-"
"""The owner of keys that were used without a checked identity: on the tables, or with ``auth=none``."""


class Principal(NamedTuple):
    """Who makes a call.

    Attributes:
        name: for people, such as the ARN of a role's session; at most ``MAX_NAME`` bytes.
        owner: to whom idempotency keys belong. Unlike the name it is the same for all sessions of a role, so
            that another process of a producer can go on where the first one died. Empty if nobody has checked
            who it is.
    """

    name: str
    owner: str = ""


class IdempotencyKey(NamedTuple):
    """A caller's idempotency key: the same text of another caller is another key.

    Attributes:
        text: as given.
        owner: short digest of whose it is; ``NOBODY`` without an identity.
        name: of its rows: a digest of both, so that it may be any text.
    """

    text: str
    owner: str
    name: str

    @classmethod
    def of(cls, text: str, caller: Principal | None = None) -> Self:
        """The key of a caller; None for the service's own calls, and for those without an identity.

        Raises:
            InvalidRequest: the key is not text of 1 to 256 characters.
        """
        limits.text("Idempotency-Key", text, limits.MAX_IDEMPOTENCY_KEY, least=1)
        whose = caller.owner if caller else ""
        owner = _digest(whose, size=16) if whose else NOBODY
        return cls(text, owner, _digest(whose, text, size=32))

    @classmethod
    def of_item(cls, ordinal: int, text: str) -> Self:
        """The key of an item that adds to its own batch, whoever handles its message.

        Raises:
            InvalidRequest: as ``of`` does.
        """
        limits.text("Idempotency-Key", text, limits.MAX_IDEMPOTENCY_KEY, least=1)
        return cls(text, NOBODY, _digest("item", str(ordinal), text, size=32))


def checked_name(text: str) -> str:
    """The name that a program gives itself.

    Raises:
        InvalidRequest: it is not text of at most ``MAX_NAME`` bytes.
    """
    if len(limits.text("opened_by", text, MAX_NAME).encode()) > MAX_NAME:
        raise InvalidRequest(f"opened_by must have at most {MAX_NAME} bytes in UTF-8; give a shorter name")
    return text


def bounded_name(text: str) -> str:
    """A name as a batch row can have it: what is over ``MAX_NAME`` bytes is cut off."""
    data = text.encode(errors="replace")
    if len(data) <= MAX_NAME:
        return data.decode()
    return data[: MAX_NAME - 3].decode(errors="ignore") + "…"


def _digest(*texts: str, size: int) -> str:
    # As JSON, so that no two lists look the same; and texts of callers may have halves of surrogate pairs.
    return ids.digest(json.dumps(texts), size)


class AccessGroup(StrEnum):
    """A group of calls; each route of the API is in one.

    Attributes:
        READ: look at everything: batches, failures with their messages, replies, the directory.
        PRODUCE: open batches, scatters and frames, add items, put work and events in.
        CONSUME: acknowledge, fail, claim and reply; take work; be in the directory.
        OPERATE: decide about batches of others: cancel, release, redrive, repair, call targets again.
        ADMINISTER: remove what is stored, and decide where messages go: expire, routes, buffers.
    """

    READ = "read"
    PRODUCE = "produce"
    CONSUME = "consume"
    OPERATE = "operate"
    ADMINISTER = "administer"
