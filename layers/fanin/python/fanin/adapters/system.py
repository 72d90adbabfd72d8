"""The clock and the randomness of the machine."""

import secrets
import time


class SystemClock:
    """A ``Clock`` that reads the time of the machine."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Monotonic time in seconds, from an arbitrary start."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class SystemRandom:
    """A ``Random`` from the operating system, fit for salts."""

    def bits(self, n: int) -> int:
        return secrets.randbits(n)

    def bytes(self, n: int) -> bytes:
        return secrets.token_bytes(n)
