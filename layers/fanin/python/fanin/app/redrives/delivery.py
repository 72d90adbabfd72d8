"""Sending the messages of failed items again, under the ids of new items or, if they are held, their own.

Which failures a page takes is read and checked, and noted, before any of them is taken.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from fanin import names
from fanin.app.failures import load_messages
from fanin.app.fresh import Fresh
from fanin.app.ledger.failed import Failed, Held
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.parts import IN_ROW, FailureRow, Redriven
from fanin.app.ports.queues import Outgoing
from fanin.app.redrives.records import Counts, RedrivePage, RedriveRun
from fanin.domain import ids, limits
from fanin.domain.batch import RETENTION, Batch, CloseWhen, Mode, OpenBatch, State
from fanin.domain.directory import is_fifo
from fanin.domain.failures import KeptMessage
from fanin.domain.limits import chunks
from fanin.domain.marks import Failure
from fanin.domain.redrives import NAMED, Redrive
from fanin.errors import GONE, BatchClosed, BatchGone, ChannelRefused, InvalidRequest, Throttled
from fanin.wire.marks import requests

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


_TRIES: Final = 5
LOST: Final = "its kept message is gone, or cannot be read"
LOADED: Final = 16 * limits.MAX_FAILED_MESSAGES
"""Bytes of messages that are in memory together, if each in the bucket is as large as one can be."""


class _Again(NamedTuple):
    """A failure whose message is on its way out once more.

    Attributes:
        note: of the failure.
        item: the id under which it is sent now.
    """

    note: FailureRow
    item: str

    @property
    def most(self) -> int:
        """Bytes that its message has at most; notes do not say how large a message is."""
        return limits.MAX_KEPT_INLINE if self.note.kept == IN_ROW else limits.MAX_FAILED_MESSAGES


class RedriveDelivery:
    """Plans, takes and delivers pages. A repeat sends the same messages under the same item ids.

    Args:
        ledger: opens the new batch and adds its items; its ports are used too.
        page: how many failures a page has.

    Attributes:
        queues: knows where messages can be sent again.
    """

    def __init__(self, ledger: LedgerService, *, page: int = PAGE) -> None:
        self._ledger = ledger
        self._ports = ledger.ports
        self._page = page
        self._held = Held(ledger.ports)
        self._failed = Failed(ledger.ports)
        self.queues = Destinations(ledger.ports)

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
        free = self._held.takings(batch, failed, elsewhere=True).free
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
        failed = set(self._held.pending(batch, ordinals)) if batch.holds else set()
        if batch.state.terminal:
            failed |= self._failed.among(batch.batch_id, ordinals)
        return [note for note in notes if note.ordinal in failed]

    def deliver(self, batch: Batch, run: RedriveRun) -> RedriveRun:
        """Take the failures of a page, as far as no other redrive has them, and send their messages.

        A message that cannot be sent fails its new item, and is kept there.

        Returns:
            The redrive, with the batch that has the items now; it is done if somebody has cancelled that
            batch. If the batch has ended otherwise, the redrive is at its next part, and at the same page.

        Raises:
            Throttled: queues or tables are overloaded; call again.
        """
        found = self.notes(batch, run.page)
        notes = [found[ordinal] for ordinal, _ in run.page.plan if ordinal in found]
        if len(notes) < len(run.page.plan):
            raise BatchGone(f"notes of failures of batch {batch.batch_id} are past their time to live")
        if batch.holds and not batch.state.terminal:
            planned = set(run.page.plan)  # what failed once more since is for the next redrive
            again = [_Again(one, one.item) for one in notes if (one.ordinal, one.failed_at) in planned]
            taken, counted = self._take(batch, run, again, added=False)
            batch = self._ledger.refresh([batch.batch_id])[batch.batch_id]
            if not batch.state.terminal:  # else nobody waits for their own ids any more
                pending = self._held.pending(batch, taken)
                self._send(run, [one for one in again if one.note.ordinal in taken & pending])
                return replace(counted, to=batch.batch_id)
        return self._deliver_anew(batch, run, notes)

    def _deliver_anew(self, batch: Batch, run: RedriveRun, notes: Sequence[FailureRow]) -> RedriveRun:
        """Take failures under items of the new batch, and send them; if it has ended, the next part goes on.

        Whoever is late with a page finds the batch of its part ended, and cannot write the next part: nobody
        takes failures under a batch that the record has not reached.
        """
        if run.to != batch.batch_id and self._cancelled(run.to):
            return replace(run, done=True)
        new: Batch | None = None
        try:
            new = self._open(batch, run)
            group = self._ledger.add(new.batch_id, len(notes), key=f"redrive/{run.page.number}")
            again = [_Again(note, item) for note, item in zip(notes, group, strict=True)]
            taken, counted = self._take(batch, run, again)
            new = self._ledger.refresh([new.batch_id])[new.batch_id]
            if new.state is State.COMPLETE or not new.state.terminal:
                self._send_new(new, counted, again, taken)
                return replace(counted, to=new.batch_id)
        except (BatchClosed, *GONE):
            self._ledger.refresh([batch.batch_id])  # if that batch is gone, no other can retry it
        if new is not None and self._cancelled(new.batch_id):
            return replace(run, to=new.batch_id, done=True)
        return replace(run, part=run.part + 1)

    def _cancelled(self, batch_id: int | None) -> bool:
        """Whether somebody has cancelled a new batch, so that the redrive is to stop."""
        rows = self._ports.batches.read([] if batch_id is None else [batch_id])
        return any(row.state is State.CANCELLED for row in rows.values())

    def _send_new(self, new: Batch, run: RedriveRun, again: Sequence[_Again], taken: Collection[int]) -> None:
        """Send what was taken; the items of the others, which are under way elsewhere, are done at once."""
        if others := [one.item for one in again if one.note.ordinal not in taken]:
            self._ledger.mark(others).whole()
        again = [one for one in again if one.note.ordinal in taken]
        if new.mode is Mode.EXACT:
            at = {one.item: ids.parse_item(one.item)[1] for one in again}
            pending = self._held.pending(new, at.values())
            again = [one for one in again if at[one.item] in pending]
        self._send(run, again)

    def _take(
        self, batch: Batch, run: RedriveRun, again: Sequence[_Again], *, added: bool = True
    ) -> tuple[set[int], RedriveRun]:
        """Take failures, unless another redrive has them, or they are done.

        The mark of a failure that is not taken notes the item that was added for it: whoever is late with the
        same page must not take the failure under that item, which is given up.

        Args:
            batch: the row.
            run: the redrive.
            again: the failures of the page, each with the item under which it would be sent.
            added: whether the items were added for this.

        Returns:
            The failures that this redrive has under these items; and the redrive with its counts.

        Raises:
            Throttled: others change the marks at the same time; call again.
        """
        notes = [one.note for one in again]
        failed = {note.ordinal for note in self.failed(batch, notes)}
        for _ in range(_TRIES):
            takings = self._held.takings(batch, notes, elsewhere=True)
            marks = takings.marks
            free = {note.ordinal for note in takings.free} & failed
            mine: set[int] = set()
            wanted: dict[int, Redriven] = {}
            for note, item in again:
                mark, n = Redriven(run.name, note.failed_at, item), note.ordinal
                lost = marks[n].lost if n in marks else ""
                if n in marks and marks[n]._replace(lost="") == mark:
                    mine.add(n)
                elif item in lost.split():
                    continue
                elif n in free:
                    wanted[n] = mark._replace(lost=lost)
                elif added and n in marks:
                    wanted[n] = marks[n]._replace(lost=f"{lost} {item}".strip())
            batch_id, until = batch.batch_id, batch.expires_at
            written = self._ports.parts.mark_redriven(batch_id, wanted, marks, expires_at=until)
            if len(written) == len(wanted):
                taken = mine | (wanted.keys() & free)
                others = {n for n, mark in marks.items() if mark.redrive == run.name and n not in free}
                counts = Counts(items=len(taken | others), already=len(failed - taken - others))
                return taken, replace(run, counts=run.counts.plus(counts))
        raise Throttled(f"others redrive batch {batch.batch_id} at the same time; try again", retry_after=1)

    def close(self, run: RedriveRun) -> None:
        """Close the new batch, if there is one: the redrive adds nothing more to it.

        Where the first batch was to drain, its items may add more in the new one, too.
        """
        if run.to is not None and run.to != run.batch_id:
            first = self._ports.batches.read([run.batch_id]).get(run.batch_id)
            drains = first is not None and first.draining_at is not None
            with suppress(*GONE):  # somebody has removed it
                self._ledger.close(run.to, when=CloseWhen.DRAINED if drains else CloseWhen.NOW)

    def _open(self, batch: Batch, run: RedriveRun) -> Batch:
        request = OpenBatch(
            user_key=batch.user_key,
            mode=batch.mode,
            keep=batch.keep,
            retry_of=batch.batch_id,
            metadata=dict(batch.metadata),
            totals=tuple(batch.totals),
            results=batch.results,
            max_items=batch.max_items,
            lifetime=batch.expires_at - RETENTION - batch.created_at // 1000,  # so it is not gone before
        )
        return self._ledger.open(request, key=f"{run.name}/{batch.batch_id}/{run.part}")

    def _send(self, run: RedriveRun, again: Sequence[_Again]) -> None:
        """Send in the order of the items, as many at a time as the memory of a function holds."""
        for some in chunks(again, max_items=len(again), size_of=lambda one: one.most, max_bytes=LOADED):
            self._send_together(run, some)

    def _send_together(self, run: RedriveRun, again: Sequence[_Again]) -> None:
        messages = load_messages(self._ports, run.batch_id, [one.note for one in again])
        lost = {one.item: LOST for one in again if one.note.ordinal not in messages}
        url_of, to = self.queues.url, run.request.queue_url
        urls = {one.item: url_of(to or one.note.source) for one in again}
        lost |= {item: "its queue is gone" for item, url in urls.items() if url is None}
        sending = [
            (one, _outgoing(one, message, url))
            for one in again
            if (message := messages.get(one.note.ordinal)) is not None and (url := urls[one.item]) is not None
        ]
        offered = self._ports.channels.offer([message for _, message in sending])
        lost |= {sending[place][0].item: why for place, why in offered.refused.items()}
        # Items of messages that cannot be sent fail, with their messages: a held item is held again.
        failures: list[Failure] = []
        unsent = [one for one in again if one.item in lost]
        for one in unsent:
            reason, kept = f"redrive: {lost[one.item]}"[: limits.MAX_REASON], messages.get(one.note.ordinal)
            failures.append(Failure(one.item, reason, kept, source=one.note.source))
        for some in requests(failures):
            self._ledger.mark(some).whole()
        offered.answers(len(sending))


def _outgoing(one: _Again, message: KeptMessage, url: str) -> Outgoing:
    """The message as it was, with the item id of now.

    A FIFO queue drops what it has seen in the last five minutes: held items come back with the same item id,
    so the time of the failure tells them apart.
    """
    group = message.group_id
    if group is None and is_fifo(url):
        group = one.item.partition(":")[0]
    once = one.item if one.item != one.note.item else f"{one.item}/{one.note.failed_at}"
    return Outgoing(url, message.body, {**message.attributes, names.ITEM_ATTRIBUTE: one.item}, group, once)
