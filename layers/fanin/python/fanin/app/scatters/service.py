"""Scattering: a message to many recipients, sent in chunks by a worker that may repeat itself."""

from contextlib import suppress
from typing import Final, NamedTuple

from fanin import names
from fanin.app.ledger.reading import ordinal_of
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.queues import Outgoing
from fanin.app.scatters import records
from fanin.app.scatters.gather import scatters, tally
from fanin.app.scatters.replies import Replies
from fanin.app.scatters.start import AT_ONCE, Starting
from fanin.domain import ids, limits, scatter
from fanin.domain.access import Principal
from fanin.domain.batch import Batch
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.domain.marks import Failure
from fanin.domain.scatter import Scatter, Scattered
from fanin.errors import GONE
from fanin.wire.marks import requests

_AT_ONCE: Final = 64 * records.CHUNK
"""Recipients whose bits are read at once: 100 words, and up to 5 above them."""
_WINDOWS: Final = 3
"""How often one call reads so many: with the names of a page, that is less than ``limits.MAX_ROWS``."""


class SentScatter(NamedTuple):
    """What a job did: messages sent, and recipients whose queue will never accept one."""

    sent: int = 0
    refused: int = 0


class ScatterService(Replies):
    """Implements ``fanin.app.api.Scatters`` over the ledger, and the worker that sends.

    Args:
        ledger: keeps the batches; its ports are used too.
        at_once: how many chunks of a topic to list before a start returns; the worker lists the others.
    """

    def __init__(self, ledger: LedgerService, *, at_once: int = AT_ONCE) -> None:
        super().__init__(ledger)
        self._starting = Starting(ledger, at_once=at_once)

    def start(
        self, scatter: Scatter, *, key: str | None = None, caller: Principal | None = None
    ) -> Scattered:
        batch = self._starting.start(scatter, key, caller)
        if key is not None:  # a repeat, possibly long after the start
            return self.status(batch.batch_id)
        return _scattered(batch, records.read_plan(self._ports.records, batch.batch_id), 0, 0)

    def status(self, batch_id: int) -> Scattered:
        batch = self._ledger.status(batch_id).batch
        plan = records.read_plan(self._ports.records, batch_id)
        return _scattered(batch, plan, *tally(self._ports, self._ledger, batch))

    def missing_recipients(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> scatter.MissingRecipients:
        limits.whole("limit", limit, 1, limits.MAX_REPLIES)
        batch = scatters(self._ledger, {batch_id})[batch_id]
        start = ordinal_of(cursor)
        found: list[int] = []
        for _ in range(_WINDOWS):
            if start >= batch.items or len(found) > limit:
                break
            found += sorted(self._ledger.pending(batch_id, start, start + _AT_ONCE))
            start += _AT_ONCE
        page, more = found[:limit], found[limit:]
        names = records.read_names(self._ports.records, batch_id, page)
        recipients = tuple(scatter.MissingRecipient(ordinal, names[ordinal]) for ordinal in page)
        after = more[0] if more else start
        return scatter.MissingRecipients(recipients, str(after) if after < batch.items else None)

    def failed_recipients(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> scatter.FailedRecipients:
        limits.whole("limit", limit, 1, limits.MAX_REPLIES)
        scatters(self._ledger, {batch_id})
        page = self._ledger.failures(batch_id, cursor=cursor, limit=limit)
        names = records.read_names(self._ports.records, batch_id, [one.ordinal for one in page.failures])
        recipients = tuple(
            scatter.FailedRecipient(one.ordinal, names[one.ordinal], one.reason) for one in page.failures
        )
        return scatter.FailedRecipients(recipients, page.cursor)

    def work(self, batch_id: int, chunk: int | None, wave: int) -> SentScatter:
        """Do a job of the worker: send to a chunk of recipients, or list them if ``chunk`` is None.

        Raises:
            Throttled: a queue or table is overloaded; repeat the call.
        """
        with suppress(*GONE):  # nobody waits for its replies any more
            if chunk is not None:
                return self.send(batch_id, chunk, wave)
            self._starting.resume(batch_id)
        return SentScatter()

    def send(self, batch_id: int, chunk: int, wave: int) -> SentScatter:
        """Send the message to those recipients of a chunk that have not replied.

        A repeat sends the same item ids. A job does nothing if a later wave has begun, or the scatter has
        ended.

        Raises:
            Throttled: a queue is overloaded; repeat the call, which sends to those only who were not sent to.
        """
        batch = self._ports.batches.read([batch_id]).get(batch_id)
        now, span = self._ports.clock.now(), records.span(chunk)
        if batch is None or batch.state.terminal or batch.gone(now) or wave < batch.retries:
            return SentScatter()
        pending = self._ledger.pending(batch_id, span.start, span.stop)
        if not pending:
            return SentScatter()
        plan = records.read_plan(self._ports.records, batch_id)
        sent, recipients = records.read_sending(self._ports.records, batch_id, chunk, wave)
        prefix = ids.issue(batch_id, 0, batch.items, batch.salt).prefix
        common = {
            **sent.attributes,
            names.ATTRIBUTE_CORRELATION: plan.correlation_id,
            names.ATTRIBUTE_REPLY_TO: self._ports.defaults.reply_to,
            names.ATTRIBUTE_TYPE: sent.type,
        }
        missing = [(n, f"{prefix}:{n}", recipients[n]) for n in sorted(pending & recipients.keys())]
        messages = [
            Outgoing(to.channel, sent.body, {**common, names.ITEM_ATTRIBUTE: item}) for _, item, to in missing
        ]
        offered = self._ports.channels.offer(messages)
        attributes = {name: MessageAttribute("String", value) for name, value in common.items() if value}
        kept = KeptMessage(sent.body, attributes)
        failures: list[Failure] = []
        for place, why in sorted(offered.refused.items()):
            _, item, to = missing[place]
            reason = f"{to.name}: {why}"[: limits.MAX_REASON]
            failures.append(Failure(item, reason, kept, source=to.channel))
        for some in requests(failures):
            self._ledger.mark(some).whole()
        if 0 < len(offered.waiting) < len(missing):
            waiting = [missing[place][0] for place in offered.waiting]
            records.put_waiting(self._ports.records, batch, chunk, wave, waiting)
        offered.answers(len(missing))
        return SentScatter(len(missing) - len(failures), len(failures))


def _scattered(batch: Batch, plan: records.ScatterPlan, received: int, failed: int) -> Scattered:
    retries, quorum = (batch.retries, plan.max_retries), plan.enough(batch.items)
    return Scattered(batch, plan.correlation_id, received, failed, *retries, quorum)
