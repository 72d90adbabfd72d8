"""Bounded buffers from the outside: over HTTPS, and as a producer and a taker that wait for each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol
from urllib.parse import quote

from fanin.app.api import Ledger
from fanin.app.ledger.service import LedgerService
from fanin.client.backoff import Backoff
from fanin.client.https.ledger import HttpsLedger
from fanin.domain.buffer import Accepted, Buffer, Buffers, Level, Released, Work
from fanin.errors import LimitReached, NotConfigured
from fanin.names import IDEMPOTENCY_HEADER
from fanin.wire import buffers as wire

_WAIT: Final = 20  # seconds: the longest that one call waits for work


class BufferCalls(Protocol):
    """What one can ask of buffers, wherever they are; see ``fanin.app.buffers.service.Buffers``."""

    def define(self, name: str, limit: int, *, queue: str | None = None) -> Buffer: ...
    def delete(self, name: str) -> None: ...
    def status(self, name: str) -> Level: ...
    def put(self, name: str, payloads: Sequence[str], *, key: str | None = None) -> Accepted: ...
    def take(
        self, name: str, *, most: int = 1, wait: int = _WAIT, hide: int | None = None
    ) -> Sequence[Work]: ...
    def done(self, name: str, tokens: Sequence[str]) -> Released: ...
    def list(self, *, cursor: str | None = None, limit: int = 100) -> Buffers: ...


class HttpsBuffers:
    """Buffers of a deployed API.

    A put without a key is not sent again when its answer was lost, since it could put the work in twice.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsLedger) -> None:
        self._api = api

    def define(self, name: str, limit: int, *, queue: str | None = None) -> Buffer:
        body = {"limit": limit, "queue": queue}
        return self._api.call(wire.decode_buffer, "PUT", _path(name), body)

    def delete(self, name: str) -> None:
        self._api.call(lambda _: None, "DELETE", _path(name))

    def status(self, name: str) -> Level:
        return self._api.call(wire.decode_level, "GET", _path(name))

    def put(self, name: str, payloads: Sequence[str], *, key: str | None = None) -> Accepted:
        return self._api.call(
            wire.decode_accepted,
            "POST",
            _path(name, "/put"),
            {"payloads": list(payloads)},
            headers={} if key is None else {IDEMPOTENCY_HEADER: key},
            repeatable=key is not None,
        )

    def take(self, name: str, *, most: int = 1, wait: int = _WAIT, hide: int | None = None) -> Sequence[Work]:
        body = {"most": most, "wait": wait, "hide": hide}
        return self._api.call(wire.decode_work, "POST", _path(name, "/take"), body)

    def done(self, name: str, tokens: Sequence[str]) -> Released:
        return self._api.call(wire.decode_released, "POST", _path(name, "/done"), {"receipts": list(tokens)})

    def list(self, *, cursor: str | None = None, limit: int = 100) -> Buffers:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(wire.decode_buffers, "GET", "/buffers", query=query)


def _path(name: str, rest: str = "") -> str:
    return f"/buffers/{quote(name, safe='')}{rest}"


class Producer:
    """Puts work into a buffer; when it is full, waits for room.

    Waits are jittered, grow with each rejection, and are no shorter than the service asks for. So producers
    slow down to the pace of the consumers, however many they are.

    Args:
        buffers: the service.
        name: of the buffer.
        backoff: how long to wait after each rejection.
        now: the time in seconds, from any beginning.
    """

    def __init__(
        self,
        buffers: BufferCalls,
        name: str,
        *,
        backoff: Backoff | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._buffers = buffers
        self._name = name
        self._backoff = backoff or Backoff(first=0.5, most=10.0)
        self._now = now

    def put(self, *payloads: str, timeout: float | None = None, key: str | None = None) -> Accepted:
        """Put work in, all of it or none, waiting while there is no room.

        Args:
            payloads: 1 to 10 texts.
            timeout: seconds to wait at the most; None waits as long as it takes.
            key: makes a repeat return the same items.

        Raises:
            LimitReached: there was no room in all that time.
        """
        give_up = None if timeout is None else self._now() + timeout
        attempt = 0
        while True:
            try:
                return self.put_now(*payloads, key=key)
            except LimitReached as error:
                if give_up is not None and self._now() >= give_up:
                    raise
                self._backoff.wait(attempt, error.retry_after)
                attempt += 1

    def put_now(self, *payloads: str, key: str | None = None) -> Accepted:
        """Put work in without waiting.

        Raises:
            LimitReached: there is no room.
        """
        return self._buffers.put(self._name, payloads, key=key)


class Taker:
    """Takes work out of a buffer, and gives its slots back when it is done.

    ::

        tracker.taker("renders").run(render)

    Args:
        buffers: the service.
        name: of the buffer.
        most: payloads to ask for at a time.
        wait: seconds to wait for work in one call.
        hide: seconds until work that is not done comes again; by default as long as the queue says.
    """

    def __init__(
        self,
        buffers: BufferCalls,
        name: str,
        *,
        most: int = 10,
        wait: int = _WAIT,
        hide: int | None = None,
    ) -> None:
        self._buffers = buffers
        self._name = name
        self._most = most
        self._wait = wait
        self._hide = hide

    def take(self) -> Sequence[Work]:
        """Take work, none if none came in time."""
        return self._buffers.take(self._name, most=self._most, wait=self._wait, hide=self._hide)

    def done(self, *work: Work) -> Released:
        """Give back the slots of work that is done."""
        return self._buffers.done(self._name, [one.receipt for one in work])

    def run(self, handle: Callable[[str], object], *, until_empty: bool = False) -> int:
        """Handle payload after payload, and give back the slots of those that went well, in one call a take.

        An error of ``handle`` is raised when what went well has been given back; the other work comes again.

        Args:
            handle: gets a payload.
            until_empty: stop when a take finds nothing; else go on for ever.

        Returns:
            How many slots were given back.
        """
        total = 0
        while (taken := self.take()) or not until_empty:
            finished: list[Work] = []
            try:
                for work in taken:
                    handle(work.payload)
                    finished.append(work)
            finally:
                if finished:
                    total += self.done(*finished).done
        return total


def buffers_of(ledger: Ledger) -> BufferCalls:
    """Buffers of wherever the ledger is kept: the API, or tables.

    Raises:
        NotConfigured: the ledger is another one.
    """
    if isinstance(ledger, HttpsLedger):
        return HttpsBuffers(ledger)
    if isinstance(ledger, LedgerService):
        from fanin.app.buffers.service import Buffers as Direct  # noqa: PLC0415 - most trackers have no buffers

        return Direct(ledger.ports, ledger)
    raise NotConfigured("this ledger has no buffers; make the tracker over an API or over tables")
