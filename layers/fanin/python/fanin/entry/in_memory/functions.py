"""What the functions of a deployed service do, each for one record or message."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from fanin.app.directory.service import TOPICS
from fanin.app.failures import last_attempts
from fanin.app.ports import Ports
from fanin.app.ports.records import Record
from fanin.app.redrives.records import WORK_MS
from fanin.app.services import Services
from fanin.app.targets.delivery import JobOutcome, deliver
from fanin.app.targets.records import TargetJob
from fanin.entry.in_memory.event_source import QueueRecord
from fanin.entry.in_memory.sources import Dead
from fanin.entry.kept_messages import dead_failure
from fanin.entry.partial_batch import TARGETS, partial_batch_response, pause
from fanin.entry.queues import acknowledge
from fanin.errors import REFUSALS, FaninError, ServiceUnavailable
from fanin.names import ITEM_ATTRIBUTE
from fanin.wire.patterns import REPLIES

PAUSES_IN_MEMORY: Final = replace(TARGETS, fraction=lambda: 1.0)
"""The longest pauses, so that a test runs the same way each time."""


@dataclass
class Functions:
    """The functions. They have services of their own: their caches are not those of the callers.

    Attributes:
        ports: the stores and the rest of the world.
        dead: collects messages of unknown items.
        give_up: gets the body of a message of the ack queue that is refused.
        put_back: gets a message of the ack queue with the marks that are left of it, and sends it there.
        postpone: lets messages come again after so many seconds.
        services: the use cases.
        registered: whether there ever was a registration, so that the registrar has work.
    """

    ports: Ports
    dead: list[Dead]
    give_up: Callable[[str], object]
    put_back: Callable[[QueueRecord], object]
    postpone: Callable[[Sequence[tuple[QueueRecord, int]]], object]
    registered: bool = False

    def __post_init__(self) -> None:
        self.services = Services(self.ports)

    def directory(self, change: tuple[str, Record | None, Record | None]) -> None:
        """Do what follows from a change of the directory."""
        namespace, old, new = change
        self.registered = self.registered or namespace == TOPICS
        if record := new or old:
            self.services.follow_directory(namespace, record.name, old, new)

    def acks(self, event: QueueRecord, _context: object) -> dict[str, Any]:
        """Mark what messages of the ack queue name; refused marks go to the dead-letter queue at once."""
        handled = acknowledge(event["Records"], self.services.ledger)
        for message, _ in (*handled.poison, *handled.refused):
            self.give_up(message["body"])
            self.dead.append(Dead("acks", message))
        again = [message["messageId"] for message, _ in handled.again]
        for rest, _ in handled.rests:
            try:
                self.put_back(rest)
            except Exception:  # noqa: BLE001  the others must not come again
                again.append(rest["messageId"])
        return partial_batch_response(again)

    def buffer_dead_letters(self, message: QueueRecord) -> None:
        """Fail the item of a buffer's dead message, which frees its slot, and keep the message."""
        self.dead_letters(message, kept=False)
        if not any(dead.what is message for dead in self.dead):
            self.dead.append(Dead("dead_letters", message))

    def dead_letters(self, message: QueueRecord, *, kept: bool = True) -> None:
        """Fail the item of a dead message, and keep the message with its batch.

        If it has no valid item, it is among the dead messages of the service.
        """
        item = message["messageAttributes"].get(ITEM_ATTRIBUTE, {}).get("stringValue") or ""
        last = last_attempts(self.ports, [item]).get(item)
        try:
            self.services.ledger.mark([dead_failure(message, item, "", last, kept=kept)]).whole()
        except REFUSALS:
            self.dead.append(Dead("dead_letters", message))

    def scatter(self, message: QueueRecord) -> None:
        """Do a job of the worker that sends the messages of scatters."""
        job = json.loads(message["body"])
        self.services.scatters.work(job["batch_id"], job["chunk"], job["wave"])

    def redriver(self, message: QueueRecord) -> None:
        """Go on with a redrive."""
        job = json.loads(message["body"])
        until = self.ports.clock.now() + WORK_MS
        self.services.redrives.work(job["batch_id"], job["redrive"], job["owner"], until=until)

    def targets(self, message: QueueRecord) -> None:
        """Tell a target of the end of its batch.

        Raises:
            ServiceUnavailable: it did not take it; the message comes again after a pause that grows.
        """
        job = TargetJob.decode(json.loads(message["body"]))
        try:
            outcome = deliver(self.ports, job)
            if outcome is JobOutcome.AGAIN:
                said = f"target {job.number} of batch {job.batch_id} was not told; it comes again"
                raise ServiceUnavailable(said)
        except FaninError:
            with suppress(Exception):  # it comes again all the same
                self.postpone([(message, pause(message, PAUSES_IN_MEMORY))])
            raise
        if outcome is JobOutcome.PARKED:
            self.dead.append(Dead("targets", (job.batch_id, job.number)))

    def replies(self, message: QueueRecord) -> None:
        """Take the replies of a message."""
        self.services.scatters.reply(REPLIES.decode(json.loads(message["body"])))
