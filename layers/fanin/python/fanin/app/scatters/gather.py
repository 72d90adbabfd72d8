"""Gathering: when a scatter has enough replies, what happens at its deadline, and the event of its end.

``fanin.app.services.Patterns`` calls these for the ledger.

The bits alone decide which recipients have replied. Everything here reads them on a batch that is settled.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, Final, cast

from fanin import names
from fanin.app.api import Ledger
from fanin.app.ledger.service import LedgerService
from fanin.app.ledger.walk import Walk
from fanin.app.ports import Ports
from fanin.app.ports.batches import Activity
from fanin.app.ports.events import Event
from fanin.app.scatters import correlation
from fanin.app.scatters.records import ScatterPlan, chunk_of, job, read_names, read_plan
from fanin.domain import limits
from fanin.domain.batch import LIVE, Batch, Kind, State
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


def scatters(ledger: LedgerService, batch_ids: Collection[int]) -> Mapping[int, Batch]:
    """Read batches that must be scatters, as they are now.

    The ledger remembers what is read here, and so does not mark the item of a reply that came too late to be
    stored.
    """
    rows = ledger.refresh(batch_ids)
    for row in rows.values():
        if row.kind is not Kind.SCATTER:
            raise BatchNotFound(f"batch {row.batch_id} is not a scatter; check the id")
    return rows


def postpone(ports: Ports, ledger: Ledger, batch: Batch) -> Batch | None:
    """Send again to the missing recipients, if retries are left; of an open scatter, resume the listing."""
    if batch.state is State.OPEN:  # whoever lists its recipients appears to have died
        if batch.retries < RESTARTS:
            return _go_on(ports, batch, RESTART_MS, [job(batch)])
        now = ports.clock.now()
        return ports.batches.end(batch.batch_id, State.TIMED_OUT, now=now, sources=(State.OPEN,))[0]
    plan = _plan(ports, batch)
    if plan is None or batch.deadline is None or batch.retries >= plan.max_retries:
        return None
    if _enough(ports, ledger, batch, plan):
        return None
    chunks = sorted({chunk_of(ordinal) for ordinal in _missing(ledger, batch.batch_id)})
    jobs = [job(batch, chunk, batch.retries + 1) for chunk in chunks]
    return _go_on(ports, batch, plan.timeout * 1000, jobs)


def _go_on(ports: Ports, batch: Batch, span_ms: int, jobs: Sequence[Mapping[str, object]]) -> Batch | None:
    """Queue jobs, and postpone the deadline.

    The alarm and the jobs come first, then the write that counts the retry: a crash in between leaves a
    deadline that is still due, and the same items are sent again.
    """
    before = batch.deadline or 0
    until = max(ports.clock.now(), before) + span_ms
    ports.timers.set(batch.batch_id, until)
    ports.jobs.send(jobs)
    activity = Activity.of(replace(batch, deadline=until), ports.clock.now())
    return ports.batches.postpone(batch.batch_id, deadline=before, until=until, activity=activity)[0]


def ended(ports: Ports, ledger: Ledger, batch: Batch, event: Event) -> Event:
    """Make the event of a scatter's end, and free its correlation id."""
    plan = _plan(ports, batch)
    if plan is None:
        return event
    correlation.free(ports, plan.correlation_id, batch.batch_id)
    received, failed = tally(ports, ledger, batch)
    missing = batch.items - received - failed
    first = list(islice(_missing(ledger, batch.batch_id), NAMED)) if missing else []
    failures = cast("list[dict[str, Any]]", event.detail["failures"])
    refused = [failure["ordinal"] for failure in failures]
    named = read_names(ports.records, batch.batch_id, {*first, *refused})
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


def end_if_enough(ports: Ports, ledger: Ledger, batch: Batch, plan: ScatterPlan) -> None:
    """End a scatter whose quorum has replied, unless all recipients have: then it completes by itself."""
    if _enough(ports, ledger, batch, plan):
        now = ports.clock.now()
        ports.batches.end(batch.batch_id, State.COMPLETE, now=now, sources=LIVE, partial=True)


def tally(ports: Ports, ledger: Ledger, batch: Batch) -> tuple[int, int]:
    """Count exactly: recipients that replied, and recipients that failed.

    A word has both counts, and they are read together. Where a range was marked high in the tree, words do
    not know what failed, and the notes are counted: after what is done, so that a failure between the two
    counts does not look like a reply.
    """
    batch = ledger.status(batch.batch_id, brief=True).batch
    if batch.all_done and not batch.failed_more:
        return batch.items - batch.failed, batch.failed
    walk = Walk(ports, batch, budget=_ROWS).finish()
    done = batch.items - walk.pending
    if walk.tally.whole:
        return done - walk.tally.failed, walk.tally.failed
    listing = pages(ledger.failures, batch.batch_id, limit=limits.MAX_PAGE)
    failed = sum(len(page.failures) for page in listing)
    return max(0, done - failed), failed


def _enough(ports: Ports, ledger: Ledger, batch: Batch, plan: ScatterPlan) -> bool:
    enough = plan.enough(batch.items)
    if enough is None:
        return False
    received, failed = tally(ports, ledger, batch)
    return received >= enough and received + failed < batch.items


def _plan(ports: Ports, batch: Batch) -> ScatterPlan | None:
    with suppress(BatchNotFound):  # past its time to live; the batch ends like a plain one
        return read_plan(ports.records, batch.batch_id)
    return None


def _missing(ledger: Ledger, batch_id: int) -> Iterator[int]:
    for page in pages(ledger.missing, batch_id, limit=limits.MAX_PAGE):
        for found in page.ranges:
            yield from range(found.start, found.stop)
