"""Counts every row that the memory stores read or write, and lets tests act around it."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Final, TypeVar

from fanin.errors import FaninError, OutcomeUnknown, ServiceUnavailable

OnCall = Callable[[str, str], None]
"""Called around each access with its name, such as ``words.clear``, and ``before`` or ``after``."""

SENDS: Final = 4
"""How often the SDK sends a request before it gives up; as ``client_factory`` of the AWS adapters sets it."""

T = TypeVar("T")


class LostAnswer(BaseException):
    """Raised by an ``OnCall`` after an access: it took effect, and its caller did not get the answer."""


class Delayed(BaseException):
    """Raised by an ``OnCall`` before an access that arrives after its caller has stopped waiting.

    It takes effect when ``Accesses.arrive`` is called.
    """


def nothing(_call: str, _moment: str) -> None:
    """An ``OnCall`` that does nothing."""


class Accesses:
    """Makes every access to a row atomic, counts it, and calls ``on_call`` before and after it.

    ``on_call`` runs outside of the lock, so it may switch to another thread, or raise: before the access to
    simulate a process that died before the call arrived, after it to simulate one that died before the answer
    came. Where only the answer is lost, it raises ``LostAnswer``: the SDK then sends the call again, and
    ``on_call`` runs around that access, too. Where the request itself is late, it raises ``Delayed``.

    Attributes:
        reads: rows read, found or not, by call.
        writes: rows written, or refused by their condition, by call.
        refused: those of the writes whose condition failed, by call.
        sends: alarms and events handed over, by call.
        late: how many delayed requests have not arrived.
    """

    def __init__(self, on_call: OnCall = nothing) -> None:
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.sends: Counter[str] = Counter()
        self._on_call = on_call
        self._lock = Lock()
        self._late: list[Callable[[], object]] = []

    @property
    def late(self) -> int:
        return len(self._late)

    def arrive(self) -> None:
        """Let the first of the delayed requests take effect; nobody gets its answer."""
        with suppress(FaninError):
            self._late.pop(0)()

    def read(self, call: str, access: Callable[[], T]) -> T:
        """Read one row."""
        return self._access(call, self.reads, 1, access)

    def write(self, call: str, access: Callable[[], T], *, rows: int = 1, once: bool = False) -> T:
        """Write one row, or a few in one transaction.

        Args:
            call: its name.
            access: reads and writes the rows.
            rows: how many are written.
            once: the SDK is told to send this request only once, so a lost answer is an error.

        Raises:
            OutcomeUnknown: the answer to a request that is sent only once was lost.
            ServiceUnavailable: the answer was lost, every time that the SDK sent the request.
        """
        return self._access(call, self.writes, rows, access, sends=1 if once else SENDS)

    def send(self, call: str, access: Callable[[], T]) -> T:
        """Hand over one alarm or event."""
        return self._access(call, self.sends, 1, access)

    def _access(
        self, call: str, tally: Counter[str], rows: int, access: Callable[[], T], *, sends: int = SENDS
    ) -> T:
        def locked() -> T:
            with self._lock:
                tally[call] += rows
                return access()

        for _ in range(sends):
            try:
                self._on_call(call, "before")
                answer = locked()
                self._answer(call, sends)
            except Delayed:
                self._late.append(locked)
            except LostAnswer:
                continue
            else:
                return answer
        if sends == 1:
            raise OutcomeUnknown(f"no answer to {call} came; it may have taken effect")
        raise ServiceUnavailable(f"no answer to {call} came; try again")

    def _answer(self, call: str, sends: int) -> None:
        """Say that an access took effect; an outage at this moment loses the answer for good.

        Raises:
            OutcomeUnknown: the request is sent only once, so its caller cannot know that it took effect.
        """
        try:
            self._on_call(call, "after")
        except ServiceUnavailable as lost:
            if sends > 1:
                raise
            raise OutcomeUnknown(f"{lost}; {call} may have taken effect") from lost
