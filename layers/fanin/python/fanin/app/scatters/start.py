"""Starting a scatter: its recipients, its batch, and the jobs that send the message.

The recipients of a small topic are listed while the caller waits; those of a large one by the worker: its
batch stays open until all are known, and is then closed, with that number of items, by one conditional write.
Every step may be repeated: by a call with the same idempotency key, by the worker's queue, or by the alarm.

Recipients are listed in chunks, which form a chain. Each chunk is written once, by the first process that
gets there, and says where in the topic it ends; the next chunk begins there. A topic is read by ascending
name. So however many processes list the same scatter, crash or repeat themselves while instances come and go,
they all find the same recipients, each once.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from fanin.app.directory.service import DirectoryService
from fanin.app.ledger.reservation import Reservation
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.batches import Activity
from fanin.app.scatters import correlation, records
from fanin.app.scatters.gather import RESTART_MS
from fanin.domain import limits
from fanin.domain.access import IdempotencyKey, Principal
from fanin.domain.batch import Batch, Kind, OnDeadline, OpenBatch, State
from fanin.domain.paging import pages
from fanin.domain.scatter import Recipient, Scatter
from fanin.errors import CorrelationIdAlive, InvalidRequest, RequestTooLarge
from fanin.wire.patterns import SCATTER


def check(scatter: Scatter) -> None:
    """Refuse a request that is malformed.

    Raises:
        InvalidRequest: a value is out of bounds, or contradicts another.
        RequestTooLarge: the message is too large, or has too many recipients.
    """
    if scatter.topic is not None and scatter.recipients:
        raise InvalidRequest("a scatter goes to recipients or to a topic, not to both; leave one of them out")
    if scatter.topic is None and scatter.where:
        raise InvalidRequest("where chooses among the registrations of a topic; name the topic, too")
    limits.pairs("where", scatter.where)
    limits.at_most("recipients", scatter.recipients, limits.MAX_RECIPIENTS)
    for to in scatter.recipients:
        limits.text("a recipient's name", to.name, limits.MAX_USER_KEY)
        limits.text("a recipient's channel", to.channel, limits.MAX_CHANNEL, least=1)
    if scatter.topic is not None:
        limits.name("topic", scatter.topic, limits.MAX_NAME)
    _check_message(scatter)
    if scatter.correlation_id is not None:
        limits.text("correlation_id", scatter.correlation_id, limits.MAX_CORRELATION_ID, least=1)
    limits.whole("timeout", scatter.timeout, limits.MIN_TIMEOUT, limits.MAX_TIMEOUT)
    limits.whole("max_retries", scatter.max_retries, 0, limits.MAX_RETRIES)
    if isinstance(scatter.quorum, float):
        if not 0 < scatter.quorum < 1:
            raise InvalidRequest(
                f"quorum {scatter.quorum} is not a share between 0 and 1;"
                " give a number of replies as an integer"
            )
    elif scatter.quorum is not None:
        limits.whole("quorum", scatter.quorum, 1, limits.MAX_RECIPIENTS)


def _check_message(scatter: Scatter) -> None:
    if not isinstance(scatter.body, str) or not scatter.body:
        raise InvalidRequest("body must be text, and not empty: queues refuse an empty message")
    if len(json.dumps(scatter.body)) > limits.MAX_REPLY:
        raise RequestTooLarge(f"the body is over {limits.MAX_REPLY} bytes; send a claim check")
    limits.text("type", scatter.type, limits.MAX_USER_KEY)
    limits.at_most("attributes", scatter.attributes, limits.MAX_ATTRIBUTES)
    for name, value in scatter.attributes.items():
        limits.text("an attribute's name", name, limits.MAX_USER_KEY, least=1)
        limits.text(f"attribute {name!r}", value, limits.MAX_USER_KEY, least=1)
        if name.startswith("fanin-"):
            raise InvalidRequest(f"attribute {name!r} is reserved for fanin; use another name")


def list_recipients(
    ports: Ports, batch: Batch, scatter: Scatter, *, until: int, most: int | None = None
) -> int | None:
    """List recipients from where the listing stopped.

    Args:
        ports: the directory, and the records of batches.
        batch: of the scatter; its row need not be written yet.
        scatter: names the topic.
        until: when to stop, ms. A chunk is listed even if it is later, so that a chain of calls ends.
        most: how many chunks to list at most; None for no bound.

    Returns:
        The number of recipients; None if there may be more than those listed so far.

    Raises:
        RequestTooLarge: the topic has more recipients than a scatter may have.
        Throttled: a table is overloaded; resume later.
    """
    first, last = _place(ports, batch)
    number, stop = first, None if most is None else first + most
    found = _after(ports, scatter, last)
    while last is None or not last.end:
        if number == stop or (number > first and ports.clock.now() >= until):
            return None
        taken = list(islice(found, records.CHUNK))
        page = taken[-1][1] if taken else None
        chunk = records.Chunk(tuple(to for to, _ in taken), page, len(taken) < records.CHUNK)
        if records.span(number).start + len(taken) > limits.MAX_RECIPIENTS:
            raise RequestTooLarge(
                f"topic {scatter.topic!r} has over {limits.MAX_RECIPIENTS} recipients;"
                " choose fewer of them with where"
            )
        last, mine = records.put_chunk(ports.records, batch, number, chunk)
        if not mine:
            found = _after(ports, scatter, last)
        number += 1
    return records.span(number - 1).start + len(last.recipients)


def _place(ports: Ports, batch: Batch) -> tuple[int, records.Chunk | None]:
    """The number of the first chunk that is not written, and the chunk before it.

    Chunks are written in order, so a binary search finds the end.
    """

    def missing(number: int) -> bool:
        return records.read_chunk(ports.records, batch, number) is None

    if missing(0):
        return 0, None
    most = records.chunks(limits.MAX_RECIPIENTS).stop + 1
    number = bisect_left(range(most), True, lo=1, key=missing)
    return number, records.read_chunk(ports.records, batch, number - 1)


def _after(
    ports: Ports, scatter: Scatter, last: records.Chunk | None
) -> Iterator[tuple[Recipient, str | None]]:
    """The members of the topic after a chunk, each with the cursor of its page."""
    cursor = last.page if last else None
    name = last.recipients[-1].name if last and last.recipients else ""
    options = {"attributes": scatter.where, "cursor": cursor, "limit": limits.MAX_PAGE}
    for page in pages(DirectoryService(ports).page, scatter.topic or "", **options):
        for one in page.registrations:
            if one.name > name:
                yield Recipient(one.name, one.channel), cursor
        cursor = page.cursor


AT_ONCE = 100
"""How many chunks of a topic a start lists itself; the worker lists larger topics."""
AT_ONCE_MS = 5_000
"""How long a start lists recipients at most; API Gateway waits for thirty seconds."""
TURN_MS = 20_000
"""How long the worker lists recipients until it leaves the rest to another job."""


class Starting:
    """The first steps of scatters.

    Args:
        ledger: keeps the batches; its ports are used too.
        at_once: how many chunks of a topic to list before a start returns.
    """

    def __init__(self, ledger: LedgerService, *, at_once: int = AT_ONCE) -> None:
        self._ledger = ledger
        self._ports = ledger.ports
        self._at_once = at_once

    def start(self, scatter: Scatter, key: str | None, caller: Principal | None = None) -> Batch:
        """Start a scatter, or find the one that the key started.

        The scatter's records are written before the batch's row, and the jobs are sent after it. A crash in
        between leaves a scatter that the next call with the key finishes; without a key, its first deadline
        sends everything.
        """
        check(scatter)
        reservation = started = None
        if key is not None:
            asked = {"scatter": SCATTER.encode(scatter)}
            owned = IdempotencyKey.of(key, caller)
            reservation = Reservation(self._ports, owned, asked, self._ports.defaults.lifetime)
            started = self._ledger.find_reserved(reservation)
        if started is None:
            started = self._open(scatter, reservation, caller)
            if reservation is not None:
                reservation.keep()
                # Another process may have opened the batch first: then its row is used.
                started = self._ports.batches.read([started.batch_id])[started.batch_id]
        elif records.was_sent(self._ports.records, started):
            return started
        self._check_held(scatter, started)
        self._set_off(started)
        return started

    def _open(self, scatter: Scatter, reservation: Reservation | None, caller: Principal | None) -> Batch:
        recipients = None if scatter.topic is not None else self._resolved(scatter.recipients)
        request = OpenBatch(
            kind=Kind.SCATTER,
            size=0 if recipients is None else len(recipients),
            deadline=self._ports.clock.now() + scatter.timeout * 1000,
            on_deadline=OnDeadline.COMPLETE,
            user_key=scatter.user_key,
            metadata=scatter.metadata,
            on_end=scatter.on_end,
            totals=scatter.totals,
        )
        return self._ledger.open_prepared(
            request, reservation, caller, lambda drafted: self._write_records(drafted, scatter, recipients)
        )

    def _check_held(self, scatter: Scatter, batch: Batch) -> None:
        """Cancel a batch that was opened too late to keep the correlation id that its caller chose.

        Raises:
            CorrelationIdAlive: another scatter has it.
        """
        if scatter.correlation_id is None or batch.state.terminal:
            return
        try:
            correlation.check_held(self._ports, scatter.correlation_id, batch)
        except CorrelationIdAlive:
            if self._ledger.cancel(batch.batch_id).state is State.CANCELLED:
                raise  # else it has ended already, and freed the id

    def _write_records(
        self, batch: Batch, scatter: Scatter, recipients: Sequence[Recipient] | None
    ) -> Batch | None:
        """Write the records of a drafted batch: plan, correlation id, message and recipients.

        Returns:
            The draft, with its number of recipients if that is known now; None if another scatter has the id.
        """
        correlation_id = scatter.correlation_id or correlation.derived_from(batch)
        plan = records.ScatterPlan(correlation_id, scatter.timeout, scatter.max_retries, scatter.quorum)
        if not records.put_plan(self._ports.records, batch, plan):
            return None
        held_since = correlation.claim(self._ports, correlation_id, batch)
        records.put_message(self._ports.records, batch, scatter)
        if recipients is None:
            until = self._ports.clock.now() + AT_ONCE_MS
            found = list_recipients(self._ports, batch, scatter, until=until, most=self._at_once)
            batch = self._listed(batch, found, scatter.timeout)
        else:
            records.put_recipients(self._ports.records, batch, recipients)
        correlation.check_in_time(self._ports, held_since)
        return batch

    def resume(self, batch_id: int) -> None:
        """List the recipients of an open scatter, as far as time permits; a job of the worker.

        Raises:
            Throttled: a table or the queue is overloaded; repeat the call.
        """
        batch = self._ports.batches.read([batch_id]).get(batch_id)
        now = self._ports.clock.now()
        if batch is None or batch.gone(now):
            return
        if batch.state is State.OPEN:
            try:
                scatter = records.read_message(self._ports.records, batch_id)
                found = list_recipients(self._ports, batch, scatter, until=now + TURN_MS)
            except RequestTooLarge:
                self._ledger.cancel(batch_id)
                return
            if found is not None:
                batch = self._begin(batch, found)
        closed = batch.state is State.CLOSED and not records.was_sent(self._ports.records, batch)
        if closed or batch.state is State.OPEN:
            self._set_off(batch)

    def _set_off(self, batch: Batch) -> None:
        """Queue the next jobs: to send to all recipients, or to list them first."""
        if batch.state is State.OPEN:
            self._ports.jobs.send([records.job(batch)])
        elif batch.state is State.CLOSED and not batch.items:
            # All is done, but the process that closed the batch may have died before it completed it.
            self._ledger.close(batch.batch_id)
        elif batch.state is State.CLOSED:
            chunks = records.chunks(batch.items)
            self._ports.jobs.send(records.job(batch, chunk, batch.retries) for chunk in chunks)
            records.put_sent(self._ports.records, batch)

    def _begin(self, batch: Batch, recipients: int) -> Batch:
        """Close a batch whose recipients are all listed; its timeout starts now."""
        plan = records.read_plan(self._ports.records, batch.batch_id)
        now = self._ports.clock.now()
        until = now + plan.timeout * 1000
        self._ports.timers.set(batch.batch_id, until)
        closed = replace(batch, state=State.CLOSED, closed_at=now, deadline=until)
        row, _ = self._ports.batches.begin(
            batch.batch_id, recipients, now=now, deadline=until, activity=Activity.of(closed, now)
        )
        if row is None or row.state is State.OPEN:  # items were added that are not recipients
            return self._ledger.cancel(batch.batch_id)
        return row

    def _listed(self, batch: Batch, recipients: int | None, timeout: int) -> Batch:
        """The row of a batch that is about to be opened; ``recipients`` is None if not all are listed."""
        now = self._ports.clock.now()
        if recipients is not None:
            return replace(batch, items=recipients, deadline=now + timeout * 1000)
        listing = replace(batch, state=State.OPEN, closed_at=None, deadline=now + RESTART_MS)
        return listing.active(listing.rounded(now))

    def _resolved(self, recipients: Sequence[Recipient]) -> list[Recipient]:
        """Recipients with the URLs of their queues; each queue is looked up once.

        Raises:
            ChannelRefused: a queue does not exist, or does not carry the tag.
            NotRegistered: a registration does not exist, or its lease is over.
        """
        named = {to.channel for to in recipients if _is_name(to.channel)}
        registered = DirectoryService(self._ports).named(named)
        found = {place: Recipient(one.name, one.channel) for place, one in registered.items()}
        for to in recipients:
            if to.channel not in found:
                url = self._ports.channels.resolve(to.channel)
                found[to.channel] = Recipient(url.rpartition("/")[2], url)
        return [Recipient(to.name or found[to.channel].name, found[to.channel].channel) for to in recipients]


def _is_name(channel: str) -> bool:
    """Whether a channel is the ``topic/name`` of a registration, and not a queue."""
    return channel.count("/") == 1 and not channel.startswith("arn:")
