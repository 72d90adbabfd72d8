"""Bounded buffers over HTTPS."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from fanin.adapters.backoff import Backoff
from fanin.client.https.api import NOTHING, HttpsApi, key_header
from fanin.domain.buffer import Accepted, Buffer, BufferPage, FailedWork, Level, Released, Work
from fanin.domain.limits import MAX_WAIT, whole
from fanin.domain.principals import Principal
from fanin.wire import buffers as wire

POLLS: Final = Backoff(base=0.5, cap=5.0)
"""Pauses of a taker that finds no work."""


class HttpsBuffers:
    """Implements ``fanin.app.api.Buffers`` against a deployed API.

    A put without a key is not sent again when its answer was lost, because the work could be in twice.

    A take waits here and not in the service, where a function would be paid for as long as it waits: it asks
    again after pauses that grow up to five seconds. They go on growing from one take to the next, until there
    is work.

    Args:
        api: the API.
        pauses: between two requests of a take.
    """

    def __init__(self, api: HttpsApi, *, pauses: Backoff = POLLS) -> None:
        self._api = api
        self._pauses = pauses
        self._empty: dict[str, int] = {}
        """How often a buffer was found empty in a row."""

    def define(self, name: str, limit: int, *, queue: str | None = None) -> Buffer:
        body = {"limit": limit, "queue": queue}
        return self._api.call(wire.BUFFER, "PUT", _path(name), body)

    def delete(self, name: str) -> None:
        self._api.call(NOTHING, "DELETE", _path(name))

    def status(self, name: str) -> Level:
        return self._api.call(wire.LEVEL, "GET", _path(name))

    def put(
        self,
        name: str,
        payloads: Sequence[str],
        *,
        key: str | None = None,
        caller: Principal | None = None,
    ) -> Accepted:
        return self._api.call(
            wire.ACCEPTED,
            "POST",
            _path(name, "/put"),
            wire.PUT_WORK.encode(payloads),
            headers=key_header(key, caller),
            repeatable=key is not None,
        )

    def take(
        self, name: str, *, most: int = 1, wait: int = MAX_WAIT, visibility_timeout: int | None = None
    ) -> Sequence[Work]:
        whole("wait", wait, 0, MAX_WAIT)
        ask: dict[str, Any] = {"most": most, "visibility_timeout": visibility_timeout}
        if not wait:
            return self._take(name, ask | {"wait": wait})
        waiter, left = secrets.token_hex(8), float(wait)
        work = self._take(name, ask | {"waiter": waiter, "waits": wait})
        while not work and left > 0:
            pause = min(left, self._pauses.delay(self._empty.get(name, 0)))
            self._empty[name] = self._empty.get(name, 0) + 1
            self._pauses.sleep(pause)
            left -= pause
            work = self._take(name, ask | {"waiter": waiter, "waits": 0})
        if work:
            self._empty.pop(name, None)
        return work

    def poll(
        self,
        name: str,
        *,
        most: int = 1,
        visibility_timeout: int | None = None,
        waiter: str | None = None,
        waits: int = 0,
    ) -> Sequence[Work]:
        ask = {"most": most, "visibility_timeout": visibility_timeout}
        more = {"wait": 0} if waiter is None else {"waiter": waiter, "waits": waits}
        return self._take(name, ask | more)

    def _take(self, name: str, body: Any) -> Sequence[Work]:
        work = self._api.call(wire.TAKEN, "POST", _path(name, "/take"), body)
        return list(work)

    def done(self, name: str, tokens: Sequence[str], *, failures: Sequence[FailedWork] = ()) -> Released:
        return self._api.call(wire.RELEASED, "POST", _path(name, "/done"), wire.done_work(tokens, failures))

    def list(self, *, cursor: str | None = None, limit: int = 100) -> BufferPage:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(wire.BUFFERS, "GET", "/buffers", query=query)


def _path(name: str, rest: str = "") -> str:
    return f"/buffers/{quote(name, safe='')}{rest}"
