"""For tests of applications that use fanin: the whole service in one process, with a clock that a test moves.

>>> from datetime import timedelta
>>> from fanin.testing import InMemoryService
>>> service = InMemoryService()
>>> with service.tracker.batch(deadline=timedelta(minutes=20)) as batch:
...     group = batch.add(2)
>>> service.advance(timedelta(minutes=20))
>>> [event.detail_type for event in service.events]
['Batch Timed Out']
"""

from fanin.adapters.memory import OnCall
from fanin.app.ports.events import Event
from fanin.entry.in_memory.sources import Dead
from fanin.testing.service import Fault, InMemoryService

__all__ = ["Dead", "Event", "Fault", "InMemoryService", "OnCall"]
