"""The action log of a console: what its buttons did, who pressed them, and with what outcome.

The last entries are kept in memory for the page; each is also written as one line of JSON to the logger
``fanin.console``, which whoever serves the console keeps.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fanin.console.actions.action import Result, Segments
from fanin.wire.times import encode_time

LOGGER: Final = "fanin.console"
KEPT: Final = 200
"""Entries that a console keeps; the oldest is forgotten for another."""
MAX_SAYS: Final = 300
MAX_ASKED: Final = 100
"""Characters that an entry keeps of a sentence, and of a choice: both may quote what somebody has sent."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One press of a button.

    Attributes:
        at: when it was over, ms since the epoch.
        action: name of the action.
        kind: of its subject, such as ``batch``.
        subject: id or name of the subject.
        segments: path of the subject's page.
        result: what became of it.
        says: that in a sentence.
        numbers: the same in numbers, by name.
        caller: who pressed, as the console's options say.
        asked: what was chosen: errors, ranges, a queue.
        error: code of the error that the service answered with; empty if it did not.
    """

    at: int
    action: str
    kind: str
    subject: str
    segments: Segments
    result: Result
    says: str
    numbers: Mapping[str, int] = field(default_factory=dict)
    caller: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)
    error: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """What a line of the log has; what is empty is left out."""
        line: dict[str, Any] = {
            "at": encode_time(self.at),
            "action": self.action,
            self.kind: self.subject,
            "result": str(self.result),
            "says": self.says,
            "numbers": dict(self.numbers),
            "caller": self.caller,
            "asked": dict(self.asked),
            "error": self.error,
        }
        return {name: value for name, value in line.items() if value not in ("", {})}


class Log:
    """Keeps and writes entries. Threads share it.

    Args:
        logger: gets each entry as a line of JSON.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._entries: deque[Entry] = deque(maxlen=KEPT)
        self._lock = threading.Lock()
        self._logger = logger or logging.getLogger(LOGGER)

    def add(self, entry: Entry) -> None:
        """Keep an entry, and write it."""
        with self._lock:
            self._entries.append(entry)
        level = logging.WARNING if entry.result is Result.FAILED else logging.INFO
        self._logger.log(level, "%s", json.dumps(entry.fields))

    def entries(self) -> tuple[Entry, ...]:
        """The latest entries, the newest first."""
        with self._lock:
            return tuple(reversed(self._entries))
