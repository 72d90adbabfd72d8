"""How fast a process writes: as fast as DynamoDB takes it, and no faster than it was told to."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_REFUSALS: Final = frozenset(
    {"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"}
)
_KEPT: Final = 0.7
"""Share of its rate that a process keeps after a refusal."""
_STEPS: Final = 50
"""Seconds in which a rate without refusals grows by what it was when it was cut."""
_SLOWEST: Final = 1.0
"""Writes a second that are always tried."""
_WINDOW: Final = 1.0
"""Seconds in which any number of refusals cuts the rate once."""

_UNITS: Final[Mapping[str, Callable[[bytes], int]]] = {
    "UpdateItem": lambda _: 1,
    "PutItem": lambda _: 1,
    "DeleteItem": lambda _: 1,
    "BatchWriteItem": lambda body: body.count(b'"PutRequest"') + body.count(b'"DeleteRequest"'),
    "TransactWriteItems": lambda body: 2 * body.count(b'"TableName"'),
}
"""Operation → write units of a request, from its body; no row of fanin's is larger than 1 KB, but notes."""


class Pace:
    """Additive increase, multiplicative decrease, as TCP shares a line.

    A process knows nothing of the others, yet all of them together find the rate that the table takes, and
    share it. Until the first refusal there is no limit but ``most``. Safe with threads.

    Source: D. Chiu, R. Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in
    Computer Networks", 1989.

    Args:
        most: write units a second that this process may send; None for no limit.
        clock: seconds, from any moment on.
        sleep: waits so many seconds.

    Attributes:
        refusals: requests that DynamoDB has refused because of their rate.
    """

    def __init__(
        self,
        most: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.refusals = 0
        self._most, self._clock, self._sleep = most, clock, sleep
        self._lock = Lock()
        self._rate = most
        self._step = 0.0
        self._next = self._since = self._grown_at = clock()
        self._cut_at: float | None = None
        self._sent = 0
        self._last = 0.0

    @property
    def rate(self) -> float | None:
        """Write units a second; None while nothing limits them."""
        with self._lock:
            self._grow()
            return self._rate

    def attach(self, client: DynamoDBClient) -> None:
        """Let a client send its writes at this pace, repeated attempts included, and learn from refusals."""
        events: Any = client.meta.events
        for operation, units in _UNITS.items():
            events.register(f"before-send.dynamodb.{operation}", self._before(units))
            events.register(f"needs-retry.dynamodb.{operation}", self._answered)

    def wait(self, units: int = 1) -> None:
        """Wait until the next units may be sent."""
        with self._lock:
            self._grow()
            now = self._clock()
            if now - self._since >= _WINDOW:
                self._last = self._sent / (now - self._since)
                self._since, self._sent = now, 0
            self._sent += units
            if self._rate is None:
                return
            starts = max(now, self._next)
            self._next = starts + units / self._rate
        if starts > now:
            self._sleep(starts - now)

    def refused(self) -> None:
        """Send less from now on."""
        with self._lock:
            self.refusals += 1
            self._grow()
            now = self._clock()
            if self._cut_at is not None and now - self._cut_at < _WINDOW:
                return
            sending = max(self._last, self._sent / max(now - self._since, _WINDOW))
            before = min(sending, self._rate) if self._rate else sending
            self._step = max(before / _STEPS, _SLOWEST / _STEPS)
            self._rate = max(before * _KEPT, _SLOWEST)
            self._cut_at = self._grown_at = now

    def _grow(self) -> None:
        """Add what the time since the last look has brought; the lock is held."""
        now = self._clock()
        if self._rate is not None and self._step:
            grown = self._rate + self._step * (now - self._grown_at)
            self._rate = grown if self._most is None else min(grown, self._most)
        self._grown_at = now

    def _before(self, units: Callable[[bytes], int]) -> Callable[..., None]:
        def send(request: Any, **_: object) -> None:
            body = request.body
            self.wait(units(body if isinstance(body, bytes) else str(body).encode()))

        return send

    def _answered(self, response: Any = None, **_: object) -> None:
        if response is not None and response[1].get("Error", {}).get("Code") in _REFUSALS:
            self.refused()
