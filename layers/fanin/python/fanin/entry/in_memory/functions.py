"""What the functions of a deployed service do, each for one record or message."""

from __future__ import annotations

import json
from collections.abc import Callable

from fanin.app.bisect import REFUSALS
from fanin.app.directory.registrar import Registrar
from fanin.app.directory.service import TOPICS
from fanin.app.ports import Ports
from fanin.app.ports.records import Record as DirectoryRecord
from fanin.app.ports.words import WordKey
from fanin.app.services import Services
from fanin.domain.acks import Failure, dead_letter_reason
from fanin.domain.batch import Batch
from fanin.entry.in_memory.event_source import Record
from fanin.entry.in_memory.sources import Dead
from fanin.errors import BatchGone, BatchNotFound, InvalidRequest
from fanin.names import ITEM_ATTRIBUTE
from fanin.wire.items import QUEUED_ACKS
from fanin.wire.scatters import REPLIES


class Functions:
    """The functions. They have services of their own: their caches are not those of the callers.

    Args:
        ports: the stores and the rest of the world.
        dead: collects messages of unknown items.
        give_up: takes the body of a message of the ack queue that is at fault.

    Attributes:
        services: the use cases.
        registered: whether there ever was a registration, so that the registrar has work.
    """

    def __init__(self, ports: Ports, dead: list[Dead], give_up: Callable[[str], object]) -> None:
        self.registered = False
        self.services = Services(ports)
        self._ports = ports
        self._dead = dead
        self._give_up = give_up

    def notifier(self, change: tuple[Batch | None, Batch]) -> None:
        """Announce the end of a batch, if this change of its row ended it."""
        old, new = change
        if new.state.terminal and not (old and old.state.terminal):
            self.services.ledger.announce(new)

    def settler(self, finished: WordKey) -> None:
        """Settle a finished word again."""
        self.services.ledger.heal([finished])

    def directory(self, change: tuple[str, DirectoryRecord | None, DirectoryRecord | None]) -> None:
        """Do what follows from a change of the directory."""
        namespace, old, new = change
        self.registered = self.registered or namespace == TOPICS
        if record := new or old:
            self.services.follow_directory(namespace, record.name, old, new)

    def timer(self, batch_id: int) -> None:
        """Meet the deadline of a batch."""
        self.services.ledger.meet_deadline(batch_id)

    def reaper(self) -> None:
        """Settle or end the batches that are due."""
        self.services.ledger.reap()

    def registrar(self) -> None:
        """Drop registrations whose lease is over or whose queue is gone."""
        Registrar(self._ports).sweep()

    def acks(self, message: Record) -> None:
        """Apply a message of the ack queue; an invalid one goes to the dead-letter queue at once."""
        body = message["body"]
        try:
            said = QUEUED_ACKS.decode(json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidRequest):
            self._give_up(body)
            return
        try:
            if said.failures:
                self.services.ledger.fail(said.failures)
            if said.items or said.ranges or said.counts:
                self.services.ledger.ack(said.items, ranges=said.ranges, counts=said.counts)
        except REFUSALS:
            self._give_up(body)

    def buffer_dead_letters(self, message: Record) -> None:
        """Fail the item of a buffer's dead message, which frees its slot, and keep the message."""
        self.dead_letters(message)
        if not any(dead.what is message for dead in self._dead):
            self._dead.append(Dead("dead_letters", message))

    def dead_letters(self, message: Record) -> None:
        """Fail the item of a dead message; keep the message if it has no valid item."""
        item = message["messageAttributes"].get(ITEM_ATTRIBUTE, {}).get("stringValue")
        attributes = message["attributes"]
        queue = attributes.get("DeadLetterQueueSourceArn", message["eventSourceARN"]).rpartition(":")[2]
        reason = dead_letter_reason(attributes["ApproximateReceiveCount"], queue)
        try:
            self.services.ledger.fail([Failure(item or "", reason)])
        except (InvalidRequest, BatchNotFound, BatchGone):
            self._dead.append(Dead("dead_letters", message))

    def scatter(self, message: Record) -> None:
        """Do a job of the worker that sends the messages of scatters."""
        job = json.loads(message["body"])
        try:
            self.services.scatters.work(job["batch_id"], job["chunk"], job["wave"])
        except (BatchNotFound, BatchGone):
            return  # nobody waits for its replies any more

    def replies(self, message: Record) -> None:
        """Take the replies of a message."""
        self.services.scatters.reply(REPLIES.decode(json.loads(message["body"])))
