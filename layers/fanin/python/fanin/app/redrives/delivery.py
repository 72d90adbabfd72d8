"""Sending the messages of failed items again, under the ids of new items or, if they are held, their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from fanin import names
from fanin.app.failures.messages import KeptMessages
from fanin.app.ledger.held import Held
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.channels import Outgoing
from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.app.redrives.destinations import Destinations
from fanin.app.redrives.planning import Planning
from fanin.app.redrives.records import Run
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Mode, OpenBatch, State
from fanin.domain.channels import is_fifo
from fanin.domain.chunks import chunks
from fanin.domain.failures import KeptMessage
from fanin.domain.marks import Failure
from fanin.errors import BatchClosed, BatchGone, BatchNotFound, Throttled
from fanin.wire.marks import requests

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


class Delivery:
    """Delivers what a redrive has taken. A repeat sends the same messages under the same item ids.

    Args:
        ledger: opens the new batch and adds its items.
        planning: reads notes.
        queues: knows where messages can be sent again.
    """

    def __init__(self, ledger: LedgerService, planning: Planning, queues: Destinations) -> None:
        self._ledger = ledger
        self._ports = ledger.ports
        self._planning = planning
        self._queues = queues
        self._held = Held(ledger.ports)
        self._messages = KeptMessages(ledger.ports)

    def deliver(self, batch: Batch, run: Run) -> Run:
        """Send the messages of the failures that are taken.

        A message that cannot be sent fails its new item, and is kept there.

        Returns:
            The redrive, with the batch that has the items now.

        Raises:
            Throttled: queues or tables are overloaded; call again.
        """
        notes = self._planning.notes(batch, run.page)
        taken = [notes[ordinal] for ordinal in run.page.taken or () if ordinal in notes]
        if len(taken) < len(run.page.taken or ()):
            raise BatchGone(f"notes of failures of batch {batch.batch_id} are past their time to live")
        if batch.holds and not batch.state.terminal:
            pending = self._held.pending(batch, [note.ordinal for note in taken])
            self._send(run, [_Again(note, note.item) for note in taken if note.ordinal in pending])
            return replace(run, to=batch.batch_id)
        try:
            return self._deliver_anew(batch, run, taken)
        except (BatchGone, BatchNotFound) as gone:
            self._ledger.refresh([batch.batch_id])  # if that batch is gone, no other can retry it
            raise Throttled(f"the new batch was removed just now: {gone}; try again", retry_after=1) from gone

    def _deliver_anew(self, batch: Batch, run: Run, taken: Sequence[FailureRow]) -> Run:
        """Send messages under items of the new batch."""
        run, new, group = self._add(batch, run, len(taken))
        first = ids.parse_prefix(group.prefix).first
        again = [_Again(note, item) for note, item in zip(taken, group, strict=True)]
        if new.mode is Mode.EXACT:
            pending = self._ledger.pending(new.batch_id, first, first + len(group))
            again = [one for at, one in enumerate(again, first) if at in pending]
        self._send(run, again)
        return run

    def close(self, run: Run) -> None:
        """Close the new batch, if there is one: the redrive adds nothing more to it."""
        if run.to is not None and run.to != run.batch_id:
            with suppress(BatchGone, BatchNotFound):  # somebody has removed it
                self._ledger.close(run.to)

    def stopped(self, *runs: Run) -> bool:
        """Whether somebody has cancelled or removed a new batch of a redrive, so that it is to stop."""
        new = {run.to for run in runs if run.to is not None and run.to != run.batch_id}
        try:
            rows = self._ledger.refresh(new)
        except (BatchGone, BatchNotFound):
            return True
        return any(row.state is State.CANCELLED for row in rows.values())

    def _add(self, batch: Batch, run: Run, count: int) -> tuple[Run, Batch, ids.Group]:
        """Add the items of the page to the new batch; one that was ended meanwhile is replaced by another.

        The failures are taken, so their items must exist somewhere.

        Raises:
            Throttled: others ended as many new batches as one call tries; the next call gets past these.
        """
        tries = 0
        while tries < _TRIES:
            try:
                new = self._open(batch, run)
                tries += new.state is State.OPEN  # those that were ended before do not count
                group = self._ledger.add(new.batch_id, count, key=f"redrive/{run.page.number}")
            except (BatchClosed, BatchGone, BatchNotFound):
                self._ledger.refresh([batch.batch_id])  # if that batch is gone, no other can retry it
                run = replace(run, part=run.part + 1)
            else:
                return replace(run, to=new.batch_id), new, group
        raise Throttled(
            f"the batches that redrive batch {batch.batch_id} are ended at once by others; try again",
            retry_after=1,
        )

    def _open(self, batch: Batch, run: Run) -> Batch:
        request = OpenBatch(
            user_key=batch.user_key,
            mode=batch.mode,
            keep=batch.keep,
            retry_of=batch.batch_id,
            metadata=dict(batch.metadata),
            totals=tuple(batch.totals),
        )
        return self._ledger.open(request, key=f"{run.name}/{batch.batch_id}/{run.part}")

    def _send(self, run: Run, again: Sequence[_Again]) -> None:
        """Send in the order of the items, as many at a time as the memory of a function holds."""
        for some in chunks(again, max_items=len(again), size_of=lambda one: one.most, max_bytes=LOADED):
            self._send_together(run, some)

    def _send_together(self, run: Run, again: Sequence[_Again]) -> None:
        messages = self._messages.load(run.batch_id, [one.note for one in again])
        lost = {one.item: LOST for one in again if one.note.ordinal not in messages}
        urls = {one.item: self._queues.url(run.request.queue_url or one.note.source) for one in again}
        lost |= {item: "its queue is gone" for item, url in urls.items() if url is None}
        sending = [
            (one, _outgoing(one, message, url))
            for one in again
            if (message := messages.get(one.note.ordinal)) is not None and (url := urls[one.item]) is not None
        ]
        offered = self._ports.channels.offer([message for _, message in sending])
        lost |= {sending[place][0].item: why for place, why in offered.refused.items()}
        if lost:
            self._keep([one for one in again if one.item in lost], lost, messages)
        offered.answers(len(sending))

    def _keep(
        self, again: Sequence[_Again], why: Mapping[str, str], messages: Mapping[int, KeptMessage]
    ) -> None:
        """Fail the items of messages that cannot be sent, with their messages: a held item is held again."""
        failures = (
            Failure(
                one.item,
                _reason(why[one.item]),
                messages.get(one.note.ordinal),
                source=one.note.source,
            )
            for one in again
        )
        for some in requests(failures):
            self._ledger.mark(some).whole()


def _reason(why: str) -> str:
    return f"redrive: {why}"[: limits.MAX_REASON]


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
