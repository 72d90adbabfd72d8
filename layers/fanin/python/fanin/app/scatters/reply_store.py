"""Where replies are kept: small ones in records, spread over partitions, and large ones in the bucket.

A partition of DynamoDB takes a thousand write units a second, one for each kilobyte. If all replies to a
scatter were in its own partition, and as large as they may be, that were five replies a second.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from fanin import names
from fanin.app.ports import Ports
from fanin.app.ports.parts import shard
from fanin.app.scatters.records import reply_name
from fanin.domain.batch import Batch
from fanin.domain.claim_keys import claim_key
from fanin.domain.scatter import Reply
from fanin.errors import AccessDenied, NotConfigured

INLINE: Final = 4 * 1024
"""Bytes of JSON up to which a payload is kept in its record."""
PAGE_BYTES: Final = 1024 * 1024
"""Bytes of payloads after which a page ends."""
_AT: Final = "at"
_TOTALS: Final = "totals"
_PREFIXES: Final = "|".join(re.escape(names.CLAIM_PREFIX.format(days)) for days in names.CLAIM_DAYS)


class Kept(NamedTuple):
    """A reply as it was kept.

    Attributes:
        at: when it came, ms.
        payload: its JSON value; None if it is in the bucket.
        claim: key of its payload in the bucket; None if it is not there.
        size: bytes of a payload that this service itself put into the bucket; else 0.
        totals: what it brings to the totals of its scatter.
    """

    at: int
    payload: Any
    claim: str | None
    size: int
    totals: Mapping[str, int]

    @property
    def says(self) -> str:
        """What two replies have in common if they say the same."""
        if self.claim is None:
            return _digest(_canonical(self.payload))
        return self.claim.rpartition("/")[2] if self.size else self.claim


class First(NamedTuple):
    """What a reply has in common with the first of its recipient, which may be the reply itself.

    Attributes:
        same: whether both say the same.
        totals: what the first brings to the totals of its scatter.
    """

    same: bool
    totals: Mapping[str, int]


class ReplyStore:
    """Keeps replies, of each recipient the first.

    Args:
        ports: the records and the bucket.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def keep(self, batch: Batch, ordinal: int, reply: Reply) -> First:
        """Keep a reply if it is the recipient's first, and compare it with the first.

        A reply to a scatter that has ended is not kept, only compared. The values of the first are kept with
        it: its process may die before they are added, and then another reply must not bring its own.
        """
        kept = self.read(batch.batch_id, [ordinal]).get(ordinal)
        if kept is None and not batch.state.terminal:
            totals = {_TOTALS: dict(reply.totals)} if reply.totals else {}
            value = {_AT: self._ports.clock.now(), **totals, **self._said(batch, ordinal, reply)}
            record, written = self._ports.records.put(
                namespace(batch.batch_id, ordinal),
                reply_name(ordinal),
                value,
                expires_at=batch.expires_at,
                if_version=0,
            )
            kept = None if written or record is None else _kept(record.value)
        if kept is None:
            return First(same=True, totals=reply.totals)
        return First(kept.says == _says(reply), kept.totals)

    def read(self, batch_id: int, ordinals: Collection[int]) -> dict[int, Kept]:
        """Read the replies of recipients, by their ordinals."""
        places = {ordinal: (namespace(batch_id, ordinal), reply_name(ordinal)) for ordinal in ordinals}
        read = self._ports.records.read_all(list(places.values()))
        return {ordinal: _kept(read[place].value) for ordinal, place in places.items() if place in read}

    def fill(self, kept: Mapping[int, Kept]) -> dict[int, Kept]:
        """Load payloads from the bucket, as many as a page has room for, but at least one reply.

        Returns:
            The first of the given replies. A payload that this service put into the bucket is in its place.
        """
        room = PAGE_BYTES
        page: dict[int, Kept] = {}
        for ordinal, one in kept.items():
            room -= one.size or len(_canonical(one.payload))
            if page and room < 0:
                break
            page[ordinal] = one
        keys = {ordinal: one.claim for ordinal, one in page.items() if one.claim is not None and one.size}
        loaded = self._ports.claims.load(list(keys.values())) if keys else {}
        for ordinal, key in keys.items():
            if key in loaded:
                page[ordinal] = page[ordinal]._replace(payload=json.loads(loaded[key]), claim=None)
        return page

    def _said(self, batch: Batch, ordinal: int, reply: Reply) -> dict[str, Any]:
        """What to record of a reply; a large payload is put into the bucket first."""
        if reply.claim is not None:
            return {"claim": reply.claim}
        text = _canonical(reply.payload)
        if len(text) > INLINE:
            key = claim_key(batch, ordinal, _digest(text), self._ports.clock.now())
            try:
                self._ports.claims.put(key, text.encode())
            except (NotConfigured, AccessDenied):
                pass  # a process that may only use the tables keeps it in the record
            else:
                return {"claim": key, "size": len(text)}
        return {"payload": reply.payload}


def namespace(batch_id: int, ordinal: int) -> str:
    """The partition of a recipient's reply: a number above all batch ids."""
    return str(shard(batch_id, ordinal))


def is_claim_of(key: str, batch_id: int, ordinal: int) -> bool:
    """Whether a key was made for this recipient."""
    return re.match(rf"({_PREFIXES}){batch_id}/{ordinal}/", key) is not None


def _kept(value: Mapping[str, Any]) -> Kept:
    totals = value.get(_TOTALS, {})
    return Kept(value[_AT], value.get("payload"), value.get("claim"), value.get("size", 0), totals)


def _says(reply: Reply) -> str:
    return reply.claim if reply.claim is not None else _digest(_canonical(reply.payload))


def _canonical(payload: Any) -> str:
    """JSON in which equal values are the same text, and others are not: 1, 1.0 and true are three values."""
    return json.dumps(json.loads(json.dumps(payload)), sort_keys=True, separators=(",", ":"))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
