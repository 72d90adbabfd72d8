"""Scattering: a message to many, sent in chunks by a worker that may repeat itself."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from fanin import names
from fanin.app import correlation, limits
from fanin.app.directory import Directory
from fanin.app.gather import Gather
from fanin.app.ports import Outgoing
from fanin.app.replies import Replies
from fanin.app.scatter_records import CHUNK, Plan, chunks, put_plan, put_sending, read_plan, read_sending
from fanin.app.service import LedgerService
from fanin.domain import ids
from fanin.domain.batch import Batch, Failure, Kind, OnDeadline, OpenBatch
from fanin.domain.scatter import (
    ClaimCheck,
    ClaimCheckRequest,
    Gathered,
    Recipient,
    Reply,
    ReplyReceipt,
    Scatter,
    Scattered,
)
from fanin.errors import InvalidRequest, RequestTooLarge


class Sent(NamedTuple):
    """What a job did: messages sent, and recipients whose queue will never take one."""

    sent: int = 0
    refused: int = 0


class Scatters:
    """Implements ``fanin.app.scattering.Scattering`` over a ledger, and the worker that sends.

    Args:
        ledger: keeps the batches; its ports are used.
    """

    def __init__(self, ledger: LedgerService) -> None:
        self._ledger = ledger
        self._ports = ledger.ports
        self._gather = Gather(ledger.ports)
        self._replies = Replies(ledger, self._gather)

    def start(self, scatter: Scatter) -> Scattered:
        """See ``Scattering.start``.

        What belongs to the batch is written before its row, and the jobs are sent after it. Who dies in
        between leaves a scatter that sends everything at its first deadline.
        """
        _check(scatter)
        recipients = self._recipients(scatter)
        made = str(UUID(bytes=self._ports.random.bytes(16)))
        plan = Plan(
            made if scatter.correlation_id is None else scatter.correlation_id,
            scatter.timeout,
            scatter.max_retries,
            _quorum(scatter.quorum, len(recipients)),
        )
        request = OpenBatch(
            kind=Kind.SCATTER,
            size=len(recipients),
            deadline=self._ports.clock.now() + scatter.timeout * 1000,
            on_deadline=OnDeadline.COMPLETE,
            user_key=scatter.user_key,
            metadata=scatter.metadata,
        )

        def before(batch: Batch) -> bool:
            if not put_plan(self._ports.records, batch, plan):
                return False
            correlation.claim(self._ports, plan.correlation_id, batch)
            put_sending(self._ports.records, batch, scatter, recipients)
            correlation.check_in_time(self._ports, batch)
            return True

        batch = self._ledger.open(request, before=before)
        self._ports.jobs.send(
            {"batch_id": batch.batch_id, "chunk": chunk, "wave": 0} for chunk in chunks(len(recipients))
        )
        return _scattered(batch, plan, 0, 0)

    def status(self, batch_id: int) -> Scattered:
        """See ``Scattering.status``."""
        batch = self._ledger.status(batch_id).batch
        plan = read_plan(self._ports.records, batch_id)
        return _scattered(batch, plan, *self._gather.tally(self._ledger, batch))

    def replies(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Gathered:
        """See ``Scattering.replies``."""
        return self._replies.page(batch_id, cursor=cursor, limit=limit)

    def reply(self, replies: Sequence[Reply]) -> list[ReplyReceipt]:
        """See ``Scattering.reply``."""
        return self._replies.reply(replies)

    def claim(self, request: ClaimCheckRequest) -> ClaimCheck:
        """See ``Scattering.claim``."""
        return self._replies.claim(request)

    def send(self, batch_id: int, chunk: int, wave: int) -> Sent:
        """Send a chunk's message to those who are missing; the job of the worker.

        A repeat sends the same item ids. A job that a later wave has overtaken, or the end, does nothing.

        Raises:
            Throttled: some queue asked to slow down; repeat it all.
        """
        batch = self._ports.batches.read([batch_id]).get(batch_id)
        if batch is None or batch.state.terminal or wave < batch.retries:
            return Sent()
        if batch.gone(self._ports.clock.now()):
            return Sent()
        pending = self._ledger.pending(batch_id, chunk * CHUNK, (chunk + 1) * CHUNK)
        if not pending:
            return Sent()
        plan = read_plan(self._ports.records, batch_id)
        scatter, recipients = read_sending(self._ports.records, batch_id, chunk)
        prefix = ids.issue(batch_id, 0, batch.items, batch.salt).prefix
        common = {
            **scatter.attributes,
            names.ATTRIBUTE_CORRELATION: plan.correlation_id,
            names.ATTRIBUTE_REPLY_TO: self._ports.defaults.reply_to,
            names.ATTRIBUTE_TYPE: scatter.type,
        }
        missing = [(f"{prefix}:{ordinal}", recipients[ordinal]) for ordinal in sorted(pending)]
        refusals = self._ports.channels.send(
            [
                Outgoing(to.channel, scatter.body, {**common, names.ITEM_ATTRIBUTE: item})
                for item, to in missing
            ]
        )
        failures = [
            Failure(item, f"{to.name}: {refusal}"[: limits.MAX_REASON])
            for (item, to), refusal in zip(missing, refusals, strict=True)
            if refusal is not None
        ]
        if failures:
            self._ledger.fail(failures)
        return Sent(len(missing) - len(failures), len(failures))

    def _recipients(self, scatter: Scatter) -> list[Recipient]:
        if scatter.topic is None:
            return self._listed(scatter.recipients)
        members = Directory(self._ports).members(scatter.topic, scatter.where)
        found = [Recipient(one.name, one.channel) for one in islice(members, limits.MAX_RECIPIENTS + 1)]
        if len(found) > limits.MAX_RECIPIENTS:
            raise RequestTooLarge(f"topic {scatter.topic!r} has over {limits.MAX_RECIPIENTS} recipients")
        return found

    def _listed(self, recipients: Sequence[Recipient]) -> list[Recipient]:
        urls: dict[str, str] = {}
        for to in recipients:
            if to.channel not in urls:
                urls[to.channel] = self._ports.channels.resolve(to.channel)
        return [
            Recipient(to.name or urls[to.channel].rpartition("/")[2], urls[to.channel]) for to in recipients
        ]


def _check(scatter: Scatter) -> None:
    """Refuse a request before anything is read or written.

    Raises:
        InvalidRequest: a value is out of its range, or contradicts another.
        RequestTooLarge: the message is too large, or has too many recipients.
    """
    if scatter.topic is not None and scatter.recipients:
        raise InvalidRequest("a scatter goes to recipients or to a topic, not to both")
    if scatter.topic is None and scatter.where:
        raise InvalidRequest("where chooses among the registrations of a topic; name the topic")
    limits.at_most("recipients", scatter.recipients, limits.MAX_RECIPIENTS)
    for to in scatter.recipients:
        limits.text("a recipient's name", to.name, limits.MAX_USER_KEY)
        limits.text("a recipient's channel", to.channel, limits.MAX_CHANNEL, least=1)
    if not isinstance(scatter.body, str) or not scatter.body:
        raise InvalidRequest("body must be text, and not empty: no queue takes an empty message")
    if len(json.dumps(scatter.body)) > limits.MAX_REPLY:
        raise RequestTooLarge(f"the body is over {limits.MAX_REPLY} bytes; send a claim check")
    limits.text("type", scatter.type, limits.MAX_USER_KEY)
    limits.at_most("attributes", scatter.attributes, limits.MAX_ATTRIBUTES)
    for name, value in scatter.attributes.items():
        limits.text("an attribute's name", name, limits.MAX_USER_KEY, least=1)
        limits.text(f"attribute {name!r}", value, limits.MAX_USER_KEY, least=1)
        if name.startswith("fanin-"):
            raise InvalidRequest(f"attribute {name!r} is one of fanin's own; use another name")
    if scatter.correlation_id is not None:
        limits.text("correlation_id", scatter.correlation_id, limits.MAX_IDEMPOTENCY_KEY, least=1)
    limits.whole("timeout", scatter.timeout, limits.MIN_TIMEOUT, limits.MAX_TIMEOUT)
    limits.whole("max_retries", scatter.max_retries, 0, limits.MAX_RETRIES)


def _quorum(quorum: float | None, recipients: int) -> int | None:
    """Replies that are enough: a number, or a share of the recipients, rounded up.

    Raises:
        InvalidRequest: it is neither.
    """
    if quorum is None:
        return None
    if isinstance(quorum, float):
        if not 0 < quorum < 1:
            raise InvalidRequest(f"quorum {quorum} is no share between 0 and 1; give a number as an integer")
        return math.ceil(Fraction(str(quorum)) * recipients)
    return min(limits.whole("quorum", quorum, 1, limits.MAX_RECIPIENTS), recipients)


def _scattered(batch: Batch, plan: Plan, received: int, failed: int) -> Scattered:
    return Scattered(
        batch=batch,
        correlation_id=plan.correlation_id,
        received=received,
        failed=failed,
        retries=batch.retries,
        max_retries=plan.max_retries,
        quorum=plan.quorum,
    )
