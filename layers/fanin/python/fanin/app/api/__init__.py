"""What callers can ask of fanin: a Protocol for each of its eight services, and ``Fanin``, which has all.

The use cases implement them over ports, the library over HTTPS; a caller need not know which it has.
"""

from __future__ import annotations

from fanin.app.api.buffers import Buffers
from fanin.app.api.diagnostics import Diagnostics
from fanin.app.api.directory import Directory
from fanin.app.api.fanin import Fanin
from fanin.app.api.frames import Frames
from fanin.app.api.ledger import Ledger
from fanin.app.api.redrives import Redrives
from fanin.app.api.routing import Routing
from fanin.app.api.scatters import Scatters

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
