"""Bounded buffers over HTTPS."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from fanin.client.https.api import NOTHING, HttpsApi, key_header
from fanin.domain.buffer import Accepted, Buffer, BufferPage, FailedWork, Level, Released, Work
from fanin.domain.limits import MAX_WAIT
from fanin.domain.principals import Principal
from fanin.wire import buffers as wire


class HttpsBuffers:
    """Implements ``fanin.app.api.Buffers`` against a deployed API.

    A put without a key is not sent again when its answer was lost, because the work could be in twice.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

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
        body = {"most": most, "wait": wait, "visibility_timeout": visibility_timeout}
        work = self._api.call(wire.TAKEN, "POST", _path(name, "/take"), body)
        return list(work)

    def done(self, name: str, tokens: Sequence[str], *, failures: Sequence[FailedWork] = ()) -> Released:
        return self._api.call(wire.RELEASED, "POST", _path(name, "/done"), wire.done_work(tokens, failures))

    def list(self, *, cursor: str | None = None, limit: int = 100) -> BufferPage:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(wire.BUFFERS, "GET", "/buffers", query=query)


def _path(name: str, rest: str = "") -> str:
    return f"/buffers/{quote(name, safe='')}{rest}"
