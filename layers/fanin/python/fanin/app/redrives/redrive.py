"""Redriving: the messages of failed items are sent again, each failure by one redrive only.

A redrive goes through the failures of a batch in pages. It writes down which failures it is about to take,
adds an item for each, takes each by a conditional write that names its item, sends what it got, and goes on.
Whoever repeats a step after a crash gives them the same items, so each is sent under one item id for as long
as the batch of that item lives.
"""

from contextlib import suppress
from dataclasses import replace

from fanin.app.attention import look_again
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import REDRIVE
from fanin.app.redrives import records
from fanin.app.redrives.delivery import PAGE, RedriveDelivery
from fanin.app.redrives.records import Counts, RedriveRun, begun, run_of
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Kind
from fanin.domain.redrives import Redrive, Redriving, Redrivings
from fanin.errors import GONE, ChannelRefused, InvalidRequest, ServiceUnavailable, Throttled

AT_ONCE = 4
"""Pages that a call delivers itself; the worker does the others."""
AT_ONCE_MS = 8_000
_LISTED = limits.MAX_ROWS - 1  # and the batch
COUNTED_MS = 20_000
"""How long a dry run counts."""


class RedriveService:
    """Implements ``fanin.app.api.Redrives`` over the ledger, and the worker that redrives.

    Args:
        ledger: keeps the batches; its ports are used too.
        page: how many failures a page has.
        at_once: how many pages a call delivers itself.
    """

    def __init__(self, ledger: LedgerService, *, page: int = PAGE, at_once: int = AT_ONCE) -> None:
        self._ledger = ledger
        self._ports = ledger.ports
        self._delivery = RedriveDelivery(ledger, page=page)
        self._at_once = at_once

    def redrive(self, batch_id: int, request: Redrive | None = None) -> Redriving:
        request = request or Redrive()
        request.check()
        batch = self._batch(batch_id)
        queues = self._delivery.queues
        queues.look_again()
        if request.queue_url is not None and (why := queues.refusal(request.queue_url)) is not None:
            raise ChannelRefused(why)
        if request.dry_run:
            return self._count(batch, request)
        owner = self._ports.random.bytes(8).hex()
        run = self._begin(batch, request, owner)
        until = self._ports.clock.now() + AT_ONCE_MS
        return self._go_on(run, owner, until=until, most=self._at_once, comes_again=False)

    def redrives(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Redrivings:
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        limits.whole("batch_id", batch_id, 0, ids.MAX_BATCH_ID)
        self._ledger.refresh([batch_id])
        most = min(limit, _LISTED)
        page = self._ports.records.page(str(batch_id), prefix=REDRIVE, cursor=cursor, limit=most)
        runs = sorted((run_of(batch_id, record) for record in page.records), key=lambda run: run.started_at)
        return Redrivings(tuple(run.shown for run in runs), page.cursor)

    def work(self, batch_id: int, name: str, owner: str, *, until: int) -> Redriving | None:
        """Go on with a redrive; the job of the worker.

        Args:
            batch_id: the batch whose failures are sent again.
            name: of the redrive's record.
            owner: who handed it over; another worker that is alive is left alone.
            until: when to leave the rest to the next job, ms.

        Returns:
            How far it is; None if there is nothing to do.

        Raises:
            Throttled: queues or tables are overloaded; call again.
        """
        run = records.read(self._ports.records, batch_id, name)
        if run is None or run.done or self._is_others(run, owner):
            return None
        with suppress(*GONE):
            return self._go_on(run, owner, until=until)
        return None

    def _batch(self, batch_id: int) -> Batch:
        limits.whole("batch_id", batch_id, 0, ids.MAX_BATCH_ID)
        batch = self._ledger.refresh([batch_id])[batch_id]
        if batch.kind is not Kind.BATCH:
            raise InvalidRequest(
                f"{batch_id} is the batch of a {batch.kind}, whose messages mean nothing under the items of"
                f" another batch; start another {batch.kind} for what has failed"
            )
        if not batch.state.terminal and not batch.holds:
            raise InvalidRequest(
                f"batch {batch_id} is {batch.state}, and does not hold its failed items; redrive them when it"
                f" has ended. `fanin why {batch_id}` says what it waits for"
            )
        return batch

    def _begin(self, batch: Batch, request: Redrive, owner: str) -> RedriveRun:
        """Find the redrive of a selection that is running, or write the next one with its first page."""
        now = self._ports.clock.now()
        before = records.latest(self._ports.records, batch.batch_id, request)
        if before is not None and not before.done:
            if self._is_others(before, owner):
                return before
            return records.save(self._ports.records, batch, begun(before, owner, now))
        run = RedriveRun(batch.batch_id, request, 0, now) if before is None else before.next()
        run = begun(replace(run, request=request, started_at=now), owner, now)
        page, counts = self._delivery.after(batch, request)
        run = replace(run, page=page, counts=counts, done=page.last and not page.plan)
        return records.save(self._ports.records, batch, run)

    def _is_others(self, run: RedriveRun, owner: str) -> bool:
        return run.owner != owner and run.until > self._ports.clock.now()

    def _go_on(
        self, run: RedriveRun, owner: str, *, until: int, most: int | None = None, comes_again: bool = True
    ) -> Redriving:
        """Take steps as far as that goes, and hand what is left over to the next job.

        Args:
            run: as it is stored.
            owner: who goes on with it.
            until: as in ``_take_steps``.
            most: as in ``_take_steps``.
            comes_again: whether the caller repeats this by itself, as a job does: then it raises if the first
                step was throttled. If it got further, the next job goes on instead, with all its tries.
        """
        version = run.version
        try:
            run = self._take_steps(run, owner, until=until, most=most)
        except (Throttled, ServiceUnavailable):
            run = records.read(self._ports.records, run.batch_id, run.name) or run
            if comes_again and run.version == version:
                raise
        if not run.done and run.owner == owner:
            self._ports.redrives.send([{"batch_id": run.batch_id, "redrive": run.name, "owner": owner}])
        return run.shown

    def _take_steps(self, run: RedriveRun, owner: str, *, until: int, most: int | None) -> RedriveRun:
        """Take steps until the redrive is finished, the time is up, or somebody else goes on with it.

        Raises:
            BatchNotFound, BatchGone: the batch is gone, and its failures with it. Nobody goes on, so the new
                batch is closed: what was sent may still complete.
        """
        steps = 0
        while not run.done and not self._is_others(run, owner):
            now = self._ports.clock.now()
            if steps and (now >= until or steps == most):
                break
            steps += 1
            try:
                batch = self._ledger.refresh([run.batch_id])[run.batch_id]
                stepped = begun(self._step(batch, run), owner, now)
                run = records.save(self._ports.records, batch, stepped)
                if run.done and run.to != stepped.to:  # others have finished it, without that batch
                    self._delivery.close(stepped)
            except GONE:
                self._delivery.close(run)
                raise
        if run.done:
            for batch in self._ports.batches.read([run.batch_id]).values():
                look_again(self._ports, batch)
        return run

    def _step(self, batch: Batch, run: RedriveRun) -> RedriveRun:
        """Deliver the page, and plan the next one; or finish."""
        if run.page.plan:
            part, run = run.part, self._delivery.deliver(batch, run)
            if run.part > part:
                return run  # and nothing is done under that part before it is saved
        if not (run.done or run.page.last):
            page, counts = self._delivery.after(batch, run.request, run.page)
            run = replace(run, page=page, counts=run.counts.plus(counts))
            if page.plan or not page.last:
                return run
        self._delivery.close(run)
        return replace(run, done=True)

    def _count(self, batch: Batch, request: Redrive) -> Redriving:
        """What a redrive would do, as far as the time allows to count."""
        until = self._ports.clock.now() + COUNTED_MS
        page, counts = None, Counts()
        while page is None or not (page.last or self._ports.clock.now() >= until):
            page, more = self._delivery.after(batch, request, page)
            counts = counts.plus(more).plus(Counts(items=len(page.plan)))
        run = RedriveRun(batch.batch_id, request, 0, 0, counts=counts, done=page.last)
        return replace(run.shown, name="", started_at=None)
