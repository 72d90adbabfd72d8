"""Replies: first the payload is stored, then the bit cleared. Each recipient's first payload counts.

Small payloads are kept in records, spread over partitions, and large ones in the bucket. A partition of
DynamoDB takes a thousand write units a second, one for each kilobyte. If all replies to a scatter were in its
own partition, and as large as they may be, that were five replies a second.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from fanin import names
from fanin.app.ledger.known_batches import check_issued
from fanin.app.ledger.reading import ordinal_of
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.parts import shard
from fanin.app.scatters.gather import end_if_enough, scatters
from fanin.app.scatters.records import read_names, read_plan, reply_name
from fanin.domain import ids, limits
from fanin.domain.batch import Batch
from fanin.domain.claim_checks import ClaimCheck, ClaimCheckRequest, claim_key
from fanin.domain.marks import Done, Mark, Receipt
from fanin.domain.scatter import Gathered, GatheredReply, Reply, ReplyReceipt
from fanin.domain.totals import check_values, in_order
from fanin.errors import AccessDenied, InvalidRequest, NotConfigured, OutcomeUnknown, RequestTooLarge

INLINE: Final = 4 * 1024
"""Bytes of JSON up to which a payload is kept in its record."""
PAGE_BYTES: Final = 1024 * 1024
"""Bytes of payloads after which a page ends."""
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
            return ids.digest(_canonical(self.payload))
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
            totals = {"totals": dict(reply.totals)} if reply.totals else {}
            value = {"at": self._ports.clock.now(), **totals, **self._said(batch, ordinal, reply)}
            place = namespace(batch.batch_id, ordinal), reply_name(ordinal)
            put = self._ports.records.put
            record, written = put(*place, value, expires_at=batch.expires_at, if_version=0)
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
        keys = [one.claim for one in page.values() if one.claim is not None and one.size]
        loaded = self._ports.claims.load(keys) if keys else {}
        for ordinal, one in page.items():
            if one.claim is not None and one.claim in loaded:
                page[ordinal] = one._replace(payload=json.loads(loaded[one.claim]), claim=None)
        return page

    def _said(self, batch: Batch, ordinal: int, reply: Reply) -> dict[str, Any]:
        """What to record of a reply; a large payload is put into the bucket first."""
        if reply.claim is not None:
            return {"claim": reply.claim}
        text = _canonical(reply.payload)
        if len(text) > INLINE:
            key = claim_key(batch, ordinal, ids.digest(text), self._ports.clock.now())
            with suppress(NotConfigured, AccessDenied):  # who may only use the tables keeps it in the record
                self._ports.claims.put(key, text.encode())
                return {"claim": key, "size": len(text)}
        return {"payload": reply.payload}


def namespace(batch_id: int, ordinal: int) -> str:
    """The partition of a recipient's reply: a number above all batch ids."""
    return str(shard(batch_id, ordinal))


def is_claim_of(key: str, batch_id: int, ordinal: int) -> bool:
    """Whether a key was made for this recipient."""
    return re.match(rf"({_PREFIXES}){batch_id}/{ordinal}/", key) is not None


def _kept(value: Mapping[str, Any]) -> Kept:
    payload, claim, totals = value.get("payload"), value.get("claim"), value.get("totals", {})
    return Kept(value["at"], payload, claim, value.get("size", 0), totals)


def _says(reply: Reply) -> str:
    return reply.claim if reply.claim is not None else ids.digest(_canonical(reply.payload))


def _canonical(payload: Any) -> str:
    """JSON in which equal values are the same text, and others are not: 1, 1.0 and true are three values."""
    return json.dumps(json.loads(json.dumps(payload)), sort_keys=True, separators=(",", ":"))


_AHEAD: Final = 6_400
"""Recipients whose bits one call reads: 100 words, which it looks at twice.

With the replies and the names of a page, that is less than ``limits.MAX_ROWS``.
"""


class Replies:
    """Takes and lists the replies to scatters.

    Args:
        ledger: acknowledges the items of recipients that replied.
    """

    def __init__(self, ledger: LedgerService) -> None:
        self._ledger = ledger
        self._ports = ledger.ports
        self._kept = ReplyStore(ledger.ports)

    def reply(self, replies: Sequence[Reply]) -> list[ReplyReceipt]:
        """Store each payload, then acknowledge its item.

        A repeat after a crash finds its own payload stored, and marks the bit. A process may also die before
        it has counted a reply towards the quorum; so repeats count too, and the bits decide.
        """
        limits.at_most("replies", replies, limits.MAX_REPLIES)
        asked = [(reply, *ids.parse_item(reply.item)) for reply in replies]
        for reply, block, ordinal in asked:
            _check(reply, block.batch_id, ordinal)
        batches = scatters(self._ledger, {block.batch_id for _, block, _ in asked})
        for reply, block, _ in asked:
            batch = batches[block.batch_id]
            check_issued(block, batch)
            in_order(check_values(reply.totals), tuple(batch.totals), batch_id=batch.batch_id)
        for reply in replies:
            if reply.claim is not None and not self._ports.claims.exists(reply.claim):
                raise InvalidRequest(
                    f"no payload was uploaded under claim {reply.claim!r}; upload it first, then reply"
                )
        firsts = [self._kept.keep(batches[block.batch_id], ordinal, one) for one, block, ordinal in asked]
        marks: dict[str, Mark] = {}
        for reply, first in zip(replies, firsts, strict=True):
            marks.setdefault(reply.item, Done(reply.item, first.totals))
        marked = self._ledger.mark(list(marks.values()))
        receipts = {receipt.batch_id: receipt for receipt in marked.whole()}
        for receipt in receipts.values():
            self._count(batches[receipt.batch_id], receipt)
        done = {item for receipt in receipts.values() for item in receipt.duplicates}
        answers: list[ReplyReceipt] = []
        for (reply, block, ordinal), (same, _) in zip(asked, firsts, strict=True):
            receipt = receipts[block.batch_id]
            late = receipt.late > 0 and bool(self._ledger.pending(block.batch_id, ordinal, ordinal + 1))
            if receipt.late and not late:  # it had replied or failed before the end
                done.add(reply.item)
            first_of_item = same and not late and reply.item not in done
            done.add(reply.item)
            place = reply.item, block.batch_id, receipt.state
            answers.append(ReplyReceipt(*place, first=first_of_item, different=not same, late=late))
        return answers

    def replies(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Gathered:
        limits.whole("limit", limit, 1, limits.MAX_REPLIES)
        batch = scatters(self._ledger, {batch_id})[batch_id]
        counted, after = self._counted_from(batch, ordinal_of(cursor), limit + 1)
        wanted = counted[:limit]
        kept = self._kept.read(batch_id, wanted)
        page = self._kept.fill({ordinal: kept[ordinal] for ordinal in wanted if ordinal in kept})
        names = read_names(self._ports.records, batch_id, page)
        urls = {n: self._ports.claims.download(one.claim) for n, one in page.items() if one.claim is not None}
        replies = tuple(
            GatheredReply(n, names[n], one.at, one.payload, one.claim, urls.get(n)) for n, one in page.items()
        )
        if len(page) < len(kept):
            return Gathered(replies, str(next(ordinal for ordinal in kept if ordinal not in page)))
        after = counted[limit] if len(counted) > limit else after
        return Gathered(replies, str(after) if after < batch.items else None)

    def claim(self, request: ClaimCheckRequest) -> ClaimCheck:
        limits.whole("size", request.size, 1, limits.MAX_CLAIM)
        limits.text("content_type", request.content_type, limits.MAX_USER_KEY, least=1)
        block, ordinal = ids.parse_item(request.item)
        batch = scatters(self._ledger, {block.batch_id})[block.batch_id]
        check_issued(block, batch)
        # A new key for each, so that a second reply cannot replace the payload of the first.
        key = claim_key(batch, ordinal, self._ports.random.bytes(16).hex(), self._ports.clock.now())
        return self._ports.claims.upload(key, size=request.size, content_type=request.content_type)

    def _count(self, batch: Batch, receipt: Receipt) -> None:
        """End the scatter if its quorum has replied; the count in the batch's row only says when to check.

        Duplicates count too, since the process that stored the reply may have died before it counted. A count
        that is too high merely makes us check too early; so does one whose answer was lost.
        """
        if receipt.late or receipt.state.terminal:
            return
        plan = read_plan(self._ports.records, batch.batch_id)
        enough = plan.enough(batch.items)
        if enough is None:
            return
        replied = receipt.first + len(receipt.duplicates)
        row = None
        with suppress(OutcomeUnknown):
            row = self._ports.batches.count(batch.batch_id, replied, activity=None)
        if row is None or row.acked >= enough:
            end_if_enough(self._ports, self._ledger, batch, plan)

    def _counted_from(self, batch: Batch, start: int, most: int) -> tuple[list[int], int]:
        """The first recipients from an ordinal on whose bit was cleared, but not as failed, ascending.

        Returns:
            At most so many, and the first ordinal that was not looked at.
        """
        found: list[int] = []
        stop = min(start + _AHEAD, batch.items)
        ahead = 2 * most
        while start < stop and len(found) < most:
            end = min(start + ahead, stop)
            pending = self._ledger.pending(batch.batch_id, start, end)
            done = [ordinal for ordinal in range(start, end) if ordinal not in pending]
            failed = self._ledger.failed_among(batch.batch_id, done)
            found += [ordinal for ordinal in done if ordinal not in failed]
            start, ahead = end, 2 * ahead
        return found[:most], min(start, stop)


def _check(reply: Reply, batch_id: int, ordinal: int) -> None:
    if reply.claim is not None:
        if reply.payload is not None:
            raise InvalidRequest("a reply has a payload or a claim, not both; leave one of them out")
        if not is_claim_of(reply.claim, batch_id, ordinal):
            raise InvalidRequest(
                f"claim {reply.claim[:128]!r} was not given for this item; ask for a claim check of its own"
            )
    elif len(json.dumps(reply.payload)) > limits.MAX_REPLY:
        raise RequestTooLarge(
            f"a payload is over {limits.MAX_REPLY} bytes; upload it with a claim check: POST /v1/claim-checks"
        )
