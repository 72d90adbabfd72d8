"""The record of a redrive: what it selects, which page it is at, and what it has counted.

It is a record of the batch whose failures are sent again. Its name follows from the selection, so whoever
asks for the same selection meets it. Every change is one conditional write over the version before: of two
workers at one page, one goes on, and both have sent the same messages.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, TypeVar

from fanin.app.ports.parts import REDRIVE
from fanin.app.ports.records import Record, Records
from fanin.domain import redrives
from fanin.domain.batch import Batch
from fanin.domain.ids import digest
from fanin.domain.paging import pages
from fanin.domain.redrives import OrdinalRange, Redrive, RedriveState, Redriving
from fanin.errors import BatchGone

LEASE_MS: Final = 120_000
"""How long after its last step a worker counts as alive."""
WORK_MS: Final = 45_000
"""How long one job goes on before it leaves the rest to the next, which it puts on the queue."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the failures that were looked at; see ``Redriving``."""

    items: int = 0
    already: int = 0
    not_kept: int = 0
    not_kept_items: tuple[int, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict)

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        refused = dict(self.refused)
        for why, count in other.refused.items():
            full = why not in refused and len(refused) >= redrives.MAX_REFUSALS
            known = redrives.OTHER_REFUSALS if full else why
            refused[known] = refused.get(known, 0) + count
        items, already = self.items + other.items, self.already + other.already
        named = (*self.not_kept_items, *other.not_kept_items)[: redrives.NAMED]
        return Counts(items, already, self.not_kept + other.not_kept, named, refused)


@dataclass(frozen=True, slots=True)
class RedrivePage:
    """The failures that a redrive is about to take.

    Attributes:
        number: of the page; it makes the idempotency key under which the items of the page are added.
        before: cursor of the listing in front of the page.
        after: cursor behind it.
        last: whether nothing lies behind it.
        plan: ordinal and ``failed_at`` of each failure to take, written down before any is taken.
    """

    number: int = 0
    before: str | None = None
    after: str | None = None
    last: bool = False
    plan: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RedriveRun:
    """A redrive as its record has it.

    Attributes:
        batch_id: the batch whose failures are sent again.
        request: what it selects.
        generation: how many redrives of this selection were before it.
        started_at: ms.
        owner: who works at it.
        until: ms; until then nobody else begins to.
        page: the page at which it is.
        part: how many new batches have ended while it went on, so that another took their place.
        to: the batch that has the items; None as long as none was sent.
        done: whether it is finished.
        counts: of the pages before.
        version: of the record; 0 if it is not written yet.
    """

    batch_id: int
    request: Redrive
    generation: int
    started_at: int
    owner: str = ""
    until: int = 0
    page: RedrivePage = field(default_factory=RedrivePage)
    part: int = 0
    to: int | None = None
    done: bool = False
    counts: Counts = field(default_factory=Counts)
    version: int = 0

    @property
    def name(self) -> str:
        """Name of the record."""
        return f"{prefix_of(self.request)}{self.generation:06}"

    @property
    def shown(self) -> Redriving:
        """What callers see of it."""
        state = RedriveState.FINISHED if self.done else RedriveState.RUNNING
        name, counts = self.name.removeprefix(REDRIVE), asdict(self.counts)
        shown = Redriving(name, self.batch_id, self.to, state, **counts, started_at=self.started_at)
        errors, ranges, to = tuple(self.request.errors), tuple(self.request.ranges), self.request.queue_url
        return replace(shown, errors=errors, ranges=ranges, queue_url=to)

    def next(self) -> RedriveRun:
        """The redrive of the same selection after this one; one that found nothing is used again."""
        generation, version = (self.generation, self.version) if self.to is None else (self.generation + 1, 0)
        return RedriveRun(self.batch_id, self.request, generation, self.started_at, version=version)

    @property
    def value(self) -> dict[str, Any]:
        """The record, as JSON; what selects the failures stands beside the rest."""
        value, request = asdict(self), asdict(self.request)
        del value["batch_id"], value["version"], value["request"], request["dry_run"]
        return value | request


T = TypeVar("T", RedriveRun, RedrivePage, Counts, OrdinalRange)


def run_of(batch_id: int, record: Record) -> RedriveRun:
    """Read a redrive from its record."""
    value = record.value
    page, counts = value["page"], value["counts"]
    ranges = tuple(_read(OrdinalRange, one) for one in value["ranges"])
    return _read(
        RedriveRun,
        value,
        batch_id=batch_id,
        version=record.version,
        request=Redrive(tuple(value["errors"]), ranges, value["queue_url"]),
        page=_read(RedrivePage, page, plan=tuple(map(tuple, page["plan"]))),
        counts=_read(Counts, counts, not_kept_items=tuple(counts["not_kept_items"])),
    )


def _read(part: type[T], value: Mapping[str, Any], **own: object) -> T:
    """A part of a record; fields that are not known here are ignored."""
    return part(**{one.name: value[one.name] for one in fields(part) if one.name in value} | own)


def prefix_of(request: Redrive) -> str:
    """What the names of all redrives of a selection begin with."""
    selection = {
        "errors": sorted(set(request.errors)),
        "ranges": sorted({(one.start, one.stop) for one in request.ranges}),
        "queue_url": request.queue_url,
    }
    return f"{REDRIVE}{digest(json.dumps(selection, sort_keys=True), 8)}/"


def latest(records: Records, batch_id: int, request: Redrive) -> RedriveRun | None:
    """The latest redrive of a selection; None if there was none."""
    listing = pages(records.page, str(batch_id), prefix=prefix_of(request))
    found = deque((record for page in listing for record in page.records), maxlen=1)
    return run_of(batch_id, found[0]) if found else None


def read(records: Records, batch_id: int, name: str) -> RedriveRun | None:
    """Read a redrive by the name of its record; None if it is not there."""
    record = records.read(str(batch_id), [name]).get(name)
    return None if record is None else run_of(batch_id, record)


def save(records: Records, batch: Batch, run: RedriveRun) -> RedriveRun:
    """Write a redrive over the version that it was made from, unless another write was faster.

    Returns:
        The redrive as it is stored now.

    Raises:
        BatchGone: its batch is past its lifetime.
    """
    place, until = (str(batch.batch_id), run.name), batch.expires_at
    record, _ = records.put(*place, run.value, expires_at=until, if_version=run.version)
    if record is None:
        raise BatchGone(f"the redrive {run.name} of batch {batch.batch_id} is past its time to live")
    return run_of(batch.batch_id, record)


def begun(run: RedriveRun, owner: str, now: int) -> RedriveRun:
    """The same redrive under a worker, whose lease begins anew."""
    return replace(run, owner=owner, until=now + LEASE_MS)
