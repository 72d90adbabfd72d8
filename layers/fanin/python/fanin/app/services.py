"""All use cases of one process: the ledger, and the patterns that stand on it.

A pattern is imported when it is first used: a process that acknowledges items pays for none of them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from fanin.app.api import Buffers, Diagnostics, Frames, Ledger
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.events import Event
from fanin.app.ports.records import Record
from fanin.domain import limits
from fanin.domain.batch import Batch, Kind, State

if TYPE_CHECKING:
    from fanin.app.directory.routing import RoutingService
    from fanin.app.directory.service import DirectoryService
    from fanin.app.redrives.redrive import RedriveService
    from fanin.app.scatters.service import ScatterService


class Patterns(Kinds):
    """How each pattern handles the end, the deadline and the idle time of its batches; and stalls."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def ended(self, ledger: Ledger, batch: Batch, event: Event) -> Event:
        if batch.kind is Kind.FRAME:
            from fanin.app import frames

            return frames.ended(event)
        if batch.kind is Kind.SCATTER:
            from fanin.app.scatters import gather

            return gather.ended(self._ports, ledger, batch, event)
        return event

    def announced(self, batch: Batch) -> None:
        if batch.kind is Kind.FRAME:
            from fanin.app import frames

            frames.announced(self._ports, batch)

    def due(self, ledger: Ledger, batch: Batch) -> Batch | None:
        if batch.kind is not Kind.SCATTER:
            return None
        from fanin.app.scatters import gather

        return gather.postpone(self._ports, ledger, batch)

    def idle(self, ledger: Ledger, batch: Batch) -> State | None:
        if batch.kind is not Kind.FRAME:
            return State.ORPHANED
        from fanin.app import frames

        return frames.idle(self._ports, ledger, batch)

    def stalled(self, batch: Batch) -> Event | None:
        from fanin.app.diagnosis.service import stall_event

        return stall_event(self._ports, batch)


class Services:
    """Implements ``fanin.app.api.Fanin`` over ports; each service is made when it is first used.

    A service takes what it stands on: ledger and directory take the ports, the patterns take the ledger, and
    routing takes the directory.

    Args:
        ports: the stores and the rest of the world.
        rows: how many rows a call reads at most that looks for something, or lists.
    """

    def __init__(self, ports: Ports, *, rows: int = limits.MAX_ROWS) -> None:
        self.ports = ports
        self._rows = rows

    @cached_property
    def ledger(self) -> LedgerService:
        return LedgerService(self.ports, Patterns(self.ports), rows=self._rows)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        from fanin.app.diagnosis.service import DiagnosisService

        return DiagnosisService(self.ports, rows=self._rows)

    @cached_property
    def directory(self) -> DirectoryService:
        from fanin.app.directory.service import DirectoryService

        return DirectoryService(self.ports)

    @cached_property
    def routing(self) -> RoutingService:
        from fanin.app.directory.routing import RoutingService

        return RoutingService(self.directory)

    @cached_property
    def scatters(self) -> ScatterService:
        from fanin.app.scatters.service import ScatterService

        return ScatterService(self.ledger)

    @cached_property
    def frames(self) -> Frames:
        from fanin.app.frames import FrameService

        return FrameService(self.ledger)

    @cached_property
    def buffers(self) -> Buffers:
        from fanin.app.buffers.service import BufferService

        return BufferService(self.ledger)

    @cached_property
    def redrives(self) -> RedriveService:
        from fanin.app.redrives.redrive import RedriveService

        return RedriveService(self.ledger)

    def follow_directory(self, namespace: str, name: str, old: Record | None, new: Record | None) -> None:
        """Do what follows from a change of the directory: tell the bus, or make a route's rule.

        Args:
            namespace: where the record is.
            name: of the record.
            old: the record before; None if there was none.
            new: the record now; None if it was deleted.

        Raises:
            Throttled, ServiceUnavailable: the bus was busy; call again.
        """
        from fanin.app.directory.routing import NAMESPACE
        from fanin.app.directory.service import TOPIC_PREFIX

        if namespace == NAMESPACE:
            self.routing.settle(name)
        elif namespace.startswith(TOPIC_PREFIX):
            self.directory.announce(namespace.removeprefix(TOPIC_PREFIX), old, new)
