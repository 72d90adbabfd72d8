"""The page of one batch: how far it is, its picture, its progress, and the first of what is wrong with it.

What it reads. The status each time: up to 67 rows, or 131 where the items of a small batch are counted; and
the picture of the whole, up to 66 rows. The rest only if it can show something, and while somebody watches,
only if figures have moved, and at most every ten seconds: failures by error, missing ranges, and of an ended
batch the redrives. A diagnosis takes up to a hundred reads, so it is asked for only where it is needed: of a
live batch with failures or without progress, and not again for five minutes.
"""

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Final

from starlette.requests import Request

from fanin.console.pages import picture
from fanin.console.pages.heading import BatchRequest, Heading, heading, shown_above
from fanin.console.pages.progress import Plot, plot
from fanin.console.samples import Sample
from fanin.console.state import Console, LivePage, Part, live_routes
from fanin.domain.batch import Mode
from fanin.domain.diagnosis import Diagnosis
from fanin.domain.reports import Errors, Missing

PARTS: Final = ("why", "progress", "failures", "missing")
"""Live parts of the page below its heading: macros, and ids of elements."""
RANGES: Final = 10
"""Missing ranges that the page shows."""
FEW: Final = 65_536
"""Items that may be pending if missing ranges are read: to find the end of a long one takes many reads."""
DETAILS_EVERY_MS: Final = 10_000
"""How often failures and missing ranges are read at most, while somebody watches."""
WHY_EVERY_MS: Final = 300_000
"""How often a diagnosis is asked for at most, while somebody watches."""
QUIET_MS: Final = 120_000
"""How long a batch has made no progress if a diagnosis is asked for."""
SETTLED_MS: Final = 60_000
"""How long after its end nothing of a batch changes any more, even if its figures are bounds."""


@dataclass(frozen=True, slots=True)
class Details:
    """What is read only if it can have changed.

    Attributes:
        errors: those of the first failures.
        missing: the first missing ranges; None if they were not read.
    """

    errors: Errors = Errors(())
    missing: Missing | None = None


@dataclass(frozen=True, slots=True)
class ShownBatch:
    """What the page shows.

    Attributes:
        heading: what stands above all pages of the batch.
        picture: the bits of the whole batch.
        samples: its progress, as far as this console has watched.
        details: failures and missing ranges.
        diagnosis: why it is not finished; None if it was not asked.
        diagnosed_at: when that was asked last, ms.
        over: whether the batch has ended, and nothing here will change.
    """

    heading: Heading
    picture: picture.ShownPicture
    samples: tuple[Sample, ...]
    details: Details
    diagnosis: Diagnosis | None
    diagnosed_at: int
    over: bool

    @property
    def plot(self) -> Plot | None:
        """Progress over time; None before there are two samples."""
        return plot(self.samples)

    @property
    def facts(self) -> Hashable:
        """What the page shows, without what passes with time alone."""
        above, found = self.heading, None if self.diagnosis is None else self.diagnosis.findings[0].code
        return above.figures, self.picture.facts, above.retried_by, self.details, found, self.over


class Reader:
    """Reads one batch again and again, each time only what can have changed. Threads share it.

    Args:
        console: whose service is asked.
        batch_id: of the batch.
    """

    def __init__(self, console: Console, batch_id: int) -> None:
        self._console = console
        self._batch_id = batch_id
        self._lock = threading.Lock()
        self._heading: Heading | None = None
        self._details = Details()
        self._detailed: Hashable = None
        self._detailed_at = 0
        self._diagnosis: Diagnosis | None = None
        self._diagnosed_at = 0

    def read(self, *, fresh: bool = False) -> ShownBatch:
        """Read what the page shows, in two to six calls.

        Args:
            fresh: whether somebody has asked for the page just now, and gets what is true now.
        """
        with self._lock:
            now = self._console.now()
            above = heading(self._console, self._batch_id, None if fresh else self._heading)
            ended = above.batch.state.terminal
            late = fresh or ended or now - self._detailed_at >= DETAILS_EVERY_MS
            if late and above.figures != self._detailed:
                self._details = self._read_details(above)
                self._detailed, self._detailed_at = above.figures, now
            self._heading = above
            self._diagnose(above, now, DETAILS_EVERY_MS if fresh else WHY_EVERY_MS)
            samples = tuple(self._console.samples.of(self._batch_id))
            over = ended and (above.exact or now - (above.batch.ended_at or now) > SETTLED_MS)
            drawn = picture.shown(self._console, self._batch_id)
            return ShownBatch(above, drawn, samples, self._details, self._diagnosis, self._diagnosed_at, over)

    def _read_details(self, above: Heading) -> Details:
        ledger, batch = self._console.fanin.ledger, above.batch
        missing = None
        if batch.mode is Mode.EXACT and 0 < above.row.pending <= FEW:
            missing = ledger.missing(self._batch_id, limit=RANGES)
        errors = ledger.errors(self._batch_id) if batch.failed or batch.held else Errors(())
        return Details(errors, missing)

    def _diagnose(self, above: Heading, now: int, every: int) -> None:
        if not self._in_trouble(above, now):
            self._diagnosis = None
        elif self._diagnosis is None or now - self._diagnosed_at >= every:
            self._diagnosis = self._console.fanin.diagnostics.why(self._batch_id)
            self._diagnosed_at = now

    def _in_trouble(self, above: Heading, now: int) -> bool:
        """Whether it is worth asking why the batch is not finished."""
        batch = above.batch
        if batch.state.terminal or not batch.items:
            return False
        if batch.failed or batch.held or above.stalled_at is not None:
            return True
        samples = self._console.samples.of(self._batch_id)
        unchanged = takewhile(lambda one: one.done == samples[-1].done, reversed(samples))
        since = min(one.at for one in unchanged)
        return now - since >= QUIET_MS or now - batch.touched_at - batch.step >= QUIET_MS


def batch(request: Request, *, watched: bool = False) -> LivePage:
    """Read the page."""
    asked = BatchRequest(request)
    reader = asked.console.remembered(
        ("batch", asked.batch_id), lambda: Reader(asked.console, asked.batch_id)
    )
    shown = reader.read(fresh=not watched)
    above = shown.heading
    parts: dict[str, Part] = {
        "heading": ("batch_heading.html", "figures", above),
        "buttons": ("actions_parts.html", "row", "batch", above.batch, ("batches", asked.batch_id)),
        "tabs": ("batch_heading.html", "tabs", above, ""),
        "facts": ("batch_heading.html", "facts", above),
        **picture.parts_of(shown.picture),
        **{part: ("batch_parts.html", part, shown) for part in PARTS},
    }
    values = {**shown_above(above, ""), "shown": shown}
    return LivePage("batch.html", parts, shown.facts, shown.over, values)


ROUTES: Final = live_routes("/batches/{batch_id}", batch, partial(batch, watched=True))
