"""The ledger and the patterns that stand on it, in one bundle: what the entries are given to work with."""

from __future__ import annotations

from functools import cached_property

from fanin.app.buffers.service import Buffers
from fanin.app.directory.routing import Routing
from fanin.app.directory.service import Directory
from fanin.app.frames.notices import FrameNotices
from fanin.app.frames.service import Frames
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.scatters.gather import Gather
from fanin.app.scatters.service import Scatters
from fanin.domain.batch import Kind


def patterns(ports: Ports) -> Kinds:
    """What the patterns say about their batches, for a ``LedgerService`` over the same ports."""
    frames, gather = FrameNotices(ports), Gather(ports)
    return Kinds(
        ended={Kind.FRAME: frames.ended, Kind.SCATTER: gather.tell},
        due={Kind.SCATTER: gather.put_off},
        idle={Kind.FRAME: frames.idle},
    )


class Services:
    """One process's use cases; each pattern is made with its first use.

    Args:
        ledger: what all of them stand on; its ports are theirs.
    """

    def __init__(self, ledger: LedgerService) -> None:
        self.ledger = ledger

    @cached_property
    def directory(self) -> Directory:
        return Directory(self.ledger.ports)

    @cached_property
    def routing(self) -> Routing:
        return Routing(self.ledger.ports, self.directory)

    @cached_property
    def scatters(self) -> Scatters:
        return Scatters(self.ledger)

    @cached_property
    def frames(self) -> Frames:
        return Frames(self.ledger.ports, self.ledger)

    @cached_property
    def buffers(self) -> Buffers:
        return Buffers(self.ledger.ports, self.ledger)
