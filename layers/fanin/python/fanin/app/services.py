"""All use cases of one process: the ledger, and the patterns that stand on it."""

from __future__ import annotations

from functools import cached_property

from fanin.app.buffers.service import BufferService
from fanin.app.directory import routing
from fanin.app.directory import service as directory
from fanin.app.directory.routing import RoutingService
from fanin.app.directory.service import DirectoryService
from fanin.app.frames.notices import FrameNotices
from fanin.app.frames.service import FrameService
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.records import Record
from fanin.app.scatters.gather import Gather
from fanin.app.scatters.service import ScatterService
from fanin.domain.batch import Kind


def patterns(ports: Ports) -> Kinds:
    """How each pattern handles the end, the deadline and the idle time of its batches."""
    frames, gather = FrameNotices(ports), Gather(ports)
    return Kinds(
        ended={Kind.FRAME: frames.ended, Kind.SCATTER: gather.ended},
        announced={Kind.FRAME: frames.announced},
        due={Kind.SCATTER: gather.postpone},
        idle={Kind.FRAME: frames.idle},
    )


class Services:
    """Implements ``fanin.app.api.Fanin`` over ports; each service is made when it is first used.

    A service takes what it stands on: ledger and directory take the ports, the patterns take the ledger, and
    routing takes the directory.

    Args:
        ports: the stores and the rest of the world.
    """

    def __init__(self, ports: Ports) -> None:
        self.ports = ports

    @cached_property
    def ledger(self) -> LedgerService:
        return LedgerService(self.ports, patterns(self.ports))

    @cached_property
    def directory(self) -> DirectoryService:
        return DirectoryService(self.ports)

    @cached_property
    def routing(self) -> RoutingService:
        return RoutingService(self.directory)

    @cached_property
    def scatters(self) -> ScatterService:
        return ScatterService(self.ledger)

    @cached_property
    def frames(self) -> FrameService:
        return FrameService(self.ledger)

    @cached_property
    def buffers(self) -> BufferService:
        return BufferService(self.ledger)

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
        if namespace == routing.NAMESPACE:
            self.routing.settle(name)
        elif namespace.startswith(directory.TOPIC_PREFIX):
            self.directory.announce(namespace.removeprefix(directory.TOPIC_PREFIX), old, new)
