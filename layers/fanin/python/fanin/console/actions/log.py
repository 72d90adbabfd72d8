"""The action log of a console: what its buttons did, who pressed them, and with what outcome.

The last entries are kept in memory for the page. Each is also written as one line of JSON, with the fields of
the API's action log, to the logger ``fanin.console``; whoever serves the console decides where that goes.
"""

import json
import logging
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TextIO

from fanin.console.actions.action import EffectKind, Segments
from fanin.wire.actions import MESSAGE, Action, log_fields

LOGGER: Final = "fanin.console"
KEPT: Final = 200
"""Entries that a console keeps; the oldest is forgotten for another."""
MAX_SAYS: Final = 300
MAX_ASKED: Final = 100
"""Characters that an entry keeps of a sentence, and of a choice: both may quote what somebody has sent."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One press of a button.

    Attributes:
        record: the same as the API logs it.
        action: title of the action.
        kind: of its subject, such as ``batch``.
        subject: id or name of the subject.
        segments: path of the subject's page.
        result: what became of it.
        says: that in a sentence. It may quote a user's text, so only the page has it.
        asked: what was chosen: errors, ranges, a queue. It is a user's text, too.
    """

    record: Action
    action: str
    kind: str
    subject: str
    segments: Segments
    result: EffectKind
    says: str
    asked: Mapping[str, str] = field(default_factory=dict)


def log_to(stream: TextIO, level: str = "INFO") -> None:
    """Write what the buttons do to a stream, a line of JSON each; and what failed and should not have."""
    log = logging.getLogger(LOGGER)
    log.setLevel(level)
    log.propagate = False
    log.handlers = [logging.StreamHandler(stream)]


class Log:
    """Keeps entries, and writes each as a line of JSON. Threads share it."""

    def __init__(self) -> None:
        self._entries: deque[LogEntry] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    def add(self, entry: LogEntry) -> None:
        """Keep an entry, and write it."""
        with self._lock:
            self._entries.append(entry)
        level = logging.WARNING if entry.result is EffectKind.FAILED else logging.INFO
        line = json.dumps({"message": MESSAGE, **log_fields(entry.record)})
        logging.getLogger(LOGGER).log(level, "%s", line)

    def entries(self) -> tuple[LogEntry, ...]:
        """The latest entries, the newest first."""
        with self._lock:
            return tuple(reversed(self._entries))
