"""Gathering: when a scatter has enough replies, what happens at its deadline, and the event of its end.

The bits alone decide which recipients have replied. Everything here reads them on a batch that is settled.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final, cast

from fanin import names
from fanin.app.api import Ledger
from fanin.app.ledger.walk import Walk
from fanin.app.ports import Ports
from fanin.app.ports.batches import Activity
from fanin.app.ports.events import Event
from fanin.app.scatters import correlation
from fanin.app.scatters.records import ScatterPlan, chunk_of, read_names, read_plan
from fanin.domain import limits
from fanin.domain.batch import LIVE, Batch, State
from fanin.domain.paging import pages
from fanin.errors import BatchNotFound

RESTART_MS: Final = 300_000
"""How long a scatter may list its recipients before another process is asked to continue."""
RESTARTS: Final = 10
"""How often another process is asked, before the scatter is given up."""
_ROWS: Final = 2 * limits.MAX_RECIPIENTS // 64
"""More words than a tree of that many recipients has; so many are read to count them exactly."""
NAMED: Final = 100
"""How many missing recipients an event names; the API lists the others."""


class Gather:
    """How scatters handle their deadlines and their ends: see ``fanin.app.ledger.kinds``.

    Args:
        ports: the stores, the alarms and the queue of the sending worker.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def postpone(self, ledger: Ledger, batch: Batch) -> Batch | None:
        """Send again to the missing recipients, if retries are left.

        The alarm and the jobs come first, then the write that counts the retry: a crash in between leaves a
        deadline that is still due, and the same items are sent again.
        """
        if batch.state is State.OPEN:
            return self._resume_listing(batch)
        plan = self._plan(batch)
        if plan is None or batch.deadline is None or batch.retries >= plan.max_retries:
            return None
        if self._enough(ledger, batch, plan):
            return None
        until = self._next_deadline(batch, plan.timeout * 1000)
        self._ports.timers.set(batch.batch_id, until)
        self._ports.jobs.send(
            {"batch_id": batch.batch_id, "chunk": chunk, "wave": batch.retries + 1}
            for chunk in sorted({chunk_of(ordinal) for ordinal in _missing(ledger, batch.batch_id)})
        )
        return self._postpone(batch, until)

    def _resume_listing(self, batch: Batch) -> Batch | None:
        """Resume an unfinished listing; its worker appears to have died."""
        if batch.retries >= RESTARTS:
            row, _ = self._ports.batches.end(
                batch.batch_id, State.TIMED_OUT, now=self._ports.clock.now(), sources=(State.OPEN,)
            )
            return row
        until = self._next_deadline(batch, RESTART_MS)
        self._ports.timers.set(batch.batch_id, until)
        self._ports.jobs.send([{"batch_id": batch.batch_id, "chunk": None, "wave": 0}])
        return self._postpone(batch, until)

    def _next_deadline(self, batch: Batch, span_ms: int) -> int:
        return max(self._ports.clock.now(), batch.deadline or 0) + span_ms

    def _postpone(self, batch: Batch, until: int) -> Batch | None:
        activity = Activity.of(replace(batch, deadline=until), self._ports.clock.now())
        row, _ = self._ports.batches.postpone(
            batch.batch_id, deadline=batch.deadline or 0, until=until, activity=activity
        )
        return row

    def ended(self, ledger: Ledger, batch: Batch, event: Event) -> Event:
        """Make the event of a scatter's end, and free its correlation id."""
        plan = self._plan(batch)
        if plan is None:
            return event
        correlation.free(self._ports, plan.correlation_id, batch.batch_id)
        received, failed = self.tally(ledger, batch)
        missing = batch.items - received - failed
        first = [] if not missing else list(islice(_missing(ledger, batch.batch_id), NAMED))
        failures = cast("list[dict[str, Any]]", event.detail["failures"])
        refused = [failure["ordinal"] for failure in failures]
        named = read_names(self._ports.records, batch.batch_id, {*first, *refused})
        detail = {
            "missing": [],
            "missing_more": False,
            **event.detail,
            "correlation_id": plan.correlation_id,
            "recipients": batch.items,
            "received": received,
            "failed": failed,
            "failed_recipients": [named[ordinal] for ordinal in refused],
            "missing_count": missing,
            "missing_recipients": [named[ordinal] for ordinal in first],
            "retries": batch.retries,
        }
        ready = batch.state is State.COMPLETE
        return event._replace(detail_type=names.GATHER_READY if ready else event.detail_type, detail=detail)

    def end_if_enough(self, ledger: Ledger, batch: Batch, plan: ScatterPlan) -> None:
        """End a scatter whose quorum has replied, unless all recipients have: then it completes by itself."""
        if self._enough(ledger, batch, plan):
            now = self._ports.clock.now()
            self._ports.batches.end(batch.batch_id, State.COMPLETE, now=now, sources=LIVE, partial=True)

    def tally(self, ledger: Ledger, batch: Batch) -> tuple[int, int]:
        """Count exactly: recipients that replied, and recipients that failed.

        A word has both counts, and they are read together. Where a range was marked high in the tree, words
        do not know what failed, and the notes are counted: after what is done, so that a failure between the
        two counts does not look like a reply.
        """
        batch = ledger.status(batch.batch_id, brief=True).batch
        if batch.all_done and not batch.failed_more:
            return batch.items - batch.failed, batch.failed
        walk = Walk(self._ports, batch, budget=_ROWS).finish()
        done = batch.items - walk.pending
        if walk.tally.whole:
            return done - walk.tally.failed, walk.tally.failed
        listing = pages(ledger.failures, batch.batch_id, limit=limits.MAX_PAGE)
        failed = sum(len(page.failures) for page in listing)
        return max(0, done - failed), failed

    def _enough(self, ledger: Ledger, batch: Batch, plan: ScatterPlan) -> bool:
        enough = plan.enough(batch.items)
        if enough is None:
            return False
        received, failed = self.tally(ledger, batch)
        return received >= enough and received + failed < batch.items

    def _plan(self, batch: Batch) -> ScatterPlan | None:
        try:
            return read_plan(self._ports.records, batch.batch_id)
        except BatchNotFound:
            return None  # past its time to live; the batch ends like a plain one


def _missing(ledger: Ledger, batch_id: int) -> Iterator[int]:
    for page in pages(ledger.missing, batch_id, limit=limits.MAX_PAGE):
        for found in page.ranges:
            yield from range(found.start, found.stop)
