"""What callers can ask of fanin: a Protocol for each of its eight services, and ``Fanin``, which has all.

The use cases implement them over ports, the library over HTTPS; a caller need not know which it has.
"""

from typing import Protocol

from fanin.app.api.ledger import Diagnostics, Ledger, Redrives
from fanin.app.api.patterns import Buffers, Directory, Frames, Routing, Scatters

__all__ = [
    "Buffers",
    "Diagnostics",
    "Directory",
    "Fanin",
    "Frames",
    "Ledger",
    "Redrives",
    "Routing",
    "Scatters",
]


class Fanin(Protocol):
    """All eight services of fanin. ``Services`` implements them over ports, ``HttpsServices`` over HTTPS."""

    @property
    def ledger(self) -> Ledger:
        """Batches and acknowledgements."""

    @property
    def diagnostics(self) -> Diagnostics:
        """Why a batch is not finished."""

    @property
    def scatters(self) -> Scatters:
        """Scatter-gather."""

    @property
    def frames(self) -> Frames:
        """Guaranteed delivery."""

    @property
    def buffers(self) -> Buffers:
        """Bounded buffers."""

    @property
    def directory(self) -> Directory:
        """Which instances listen where."""

    @property
    def routing(self) -> Routing:
        """Which events go to which topic."""

    @property
    def redrives(self) -> Redrives:
        """Failed items, sent again."""
