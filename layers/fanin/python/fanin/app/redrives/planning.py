"""Which failures a redrive takes next: read and checked, before any of them is taken."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fanin.app.fresh import Fresh
from fanin.app.ledger.failed import Failed, Held
from fanin.app.ports import Ports
from fanin.app.ports.parts import FailureRow
from fanin.app.redrives.records import Counts, RedrivePage
from fanin.domain.batch import Batch, Mode
from fanin.domain.redrives import NAMED, Redrive
from fanin.errors import ChannelRefused, InvalidRequest

PAGE = 250
"""Failures of a page. Its plan stands in the record of the redrive, about 32 bytes for each."""
LISTED = 8
"""How many pages one step reads at most until it finds a failure to take."""
SOURCE_UNKNOWN = "the queue of the message is not known; name one: queue_url, or --queue"


_SHOWN = 300


class Destinations:
    """Resolves the queues that failed messages came from.

    Args:
        ports: the queues and the clock.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.look_again()

    def look_again(self) -> None:
        """Forget what is known: whoever presses again may have mended a queue just now."""
        self._known = Fresh[str, tuple[str | None, str | None]](self._ports.clock)

    def refusal(self, queue: str) -> str | None:
        """Why messages cannot be sent to a queue, given by URL or ARN; None if they can."""
        return self._look(queue)[1]

    def url(self, queue: str) -> str | None:
        """The URL of a queue; None if messages cannot be sent to it."""
        return self._look(queue)[0]

    def _look(self, queue: str) -> tuple[str | None, str | None]:
        """The URL of a queue to which messages can be sent, or why they cannot."""
        if (known := self._known.get(queue)) is not None:
            return known
        try:
            url = self._ports.channels.resolve(queue, new=False, again=True)
        except (ChannelRefused, InvalidRequest) as error:
            return self._known.remember(queue, (None, str(error)[:_SHOWN]))
        return self._known.remember(queue, (url, None))


class Planning:
    """Reads failures, and decides which to take. It writes nothing.

    Args:
        ports: the stores.
        page: how many failures a page has.

    Attributes:
        queues: knows where messages can be sent again.
        held: finds what is held, and what other redrives have taken.
    """

    def __init__(self, ports: Ports, *, page: int = PAGE) -> None:
        self._ports = ports
        self.queues = Destinations(ports)
        self.held = Held(ports)
        self._failed = Failed(ports)
        self._page = page

    def after(
        self, batch: Batch, request: Redrive, before: RedrivePage | None = None
    ) -> tuple[RedrivePage, Counts]:
        """Plan the page after another one, or the first.

        Failures that are not selected, or cannot be sent, take no room in a page: it goes on until it has
        one to take, for some pages of the listing.

        Args:
            batch: the row, as it is now.
            request: which failures to take.
            before: the page in front; None plans the first.

        Returns:
            The page, and what it counts of failures that are not taken.
        """
        cursor = None if before is None else before.after
        page = RedrivePage(0 if before is None else before.number + 1, cursor, cursor)
        counts = Counts()
        for _ in range(LISTED):
            front = page.after
            notes, behind = self._ports.parts.failures(batch.batch_id, cursor=front, limit=self._page)
            plan, here = self._sift(batch, request, notes)
            beyond = bool(notes) and request.stop is not None and notes[-1].ordinal >= request.stop - 1
            page = replace(page, before=front, after=behind, last=behind is None or beyond, plan=tuple(plan))
            counts = counts.plus(here)
            if plan or page.last:
                break
        return page, counts

    def notes(self, batch: Batch, page: RedrivePage) -> dict[int, FailureRow]:
        """Read the notes of a page that was planned, by ordinal, however many were written since."""
        wanted = {ordinal for ordinal, _ in page.plan}
        highest = max(wanted)
        found: dict[int, FailureRow] = {}
        cursor = page.before
        while True:
            rows, cursor = self._ports.parts.failures(batch.batch_id, cursor=cursor, limit=self._page)
            found |= {row.ordinal: row for row in rows if row.ordinal in wanted}
            if cursor is None or (rows and rows[-1].ordinal >= highest):
                return found

    def _sift(
        self, batch: Batch, request: Redrive, notes: Sequence[FailureRow]
    ) -> tuple[list[tuple[int, int]], Counts]:
        chosen = [note for note in notes if request.takes(note.ordinal, note.reason)]
        failed = self.failed(batch, chosen)
        free = self.held.takings(batch, failed, elsewhere=True).free
        kept = [note for note in free if note.kept]
        refusals = self._refusals(request, kept)
        refused = Counter(why for note in kept if (why := refusals[note.source]) is not None)
        plan = [(note.ordinal, note.failed_at) for note in kept if refusals[note.source] is None]
        without = [note.ordinal for note in free if not note.kept]
        already, named = len(failed) - len(free), tuple(without[:NAMED])
        counts = Counts(already=already, not_kept=len(without), not_kept_items=named, refused=dict(refused))
        return plan, counts

    def _refusals(self, request: Redrive, notes: Iterable[FailureRow]) -> Mapping[str, str | None]:
        """For each source why its messages cannot be sent again; None if they can."""
        return {
            source: self.queues.refusal(to) if (to := request.queue_url or source) else SOURCE_UNKNOWN
            for source in sorted({note.source for note in notes})
        }

    def failed(self, batch: Batch, notes: Sequence[FailureRow]) -> Sequence[FailureRow]:
        """Those notes whose item has failed, or is held: a note is written before another mark may win."""
        if batch.mode is Mode.ESTIMATED:
            return notes
        ordinals = [note.ordinal for note in notes]
        failed = set(self.held.pending(batch, ordinals)) if batch.holds else set()
        if batch.state.terminal:
            failed |= self._failed.among(batch.batch_id, ordinals)
        return [note for note in notes if note.ordinal in failed]
