"""All eight services together."""

from __future__ import annotations

from typing import Protocol

from fanin.app.api.buffers import Buffers
from fanin.app.api.diagnostics import Diagnostics
from fanin.app.api.directory import Directory
from fanin.app.api.frames import Frames
from fanin.app.api.ledger import Ledger
from fanin.app.api.redrives import Redrives
from fanin.app.api.routing import Routing
from fanin.app.api.scatters import Scatters


class Fanin(Protocol):
    """All eight services of fanin. ``Services`` implements them over ports, ``HttpsServices`` over HTTPS."""

    @property
    def ledger(self) -> Ledger:
        """Batches and acknowledgements."""
        ...

    @property
    def diagnostics(self) -> Diagnostics:
        """Why a batch is not finished."""
        ...

    @property
    def scatters(self) -> Scatters:
        """Scatter-gather."""
        ...

    @property
    def frames(self) -> Frames:
        """Guaranteed delivery."""
        ...

    @property
    def buffers(self) -> Buffers:
        """Bounded buffers."""
        ...

    @property
    def directory(self) -> Directory:
        """Which instances listen where."""
        ...

    @property
    def routing(self) -> Routing:
        """Which events go to which topic."""
        ...

    @property
    def redrives(self) -> Redrives:
        """Failed items, sent again."""
        ...
