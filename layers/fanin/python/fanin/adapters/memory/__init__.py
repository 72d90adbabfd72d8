"""The ports in memory: for tests, simulation and use within one process.

The stores keep the promises of ``fanin.app.ports`` row by row, as DynamoDB does: a call for many rows makes
many separate reads or writes, and other threads may run in between.

    >>> from fanin.adapters.memory import Memory
    >>> ports = Memory().ports()
"""

from fanin.adapters.memory.accesses import Accesses, Delayed, LostAnswer, OnCall
from fanin.adapters.memory.parts import MemoryParts
from fanin.adapters.memory.queues import MemoryQueues
from fanin.adapters.memory.world import Callback, FixedClock, Memory, MemoryRules, MemoryTimers, SeededRandom

__all__ = [
    "Accesses",
    "Callback",
    "Delayed",
    "FixedClock",
    "LostAnswer",
    "Memory",
    "MemoryParts",
    "MemoryQueues",
    "MemoryRules",
    "MemoryTimers",
    "OnCall",
    "SeededRandom",
]
