"""Bounded buffers over HTTPS."""

import secrets
from collections.abc import Sequence
from functools import partial
from typing import Final

from fanin.adapters.backoff import Backoff
from fanin.client.https.api import HttpsApi, HttpsService
from fanin.domain.buffer import Work
from fanin.domain.limits import MAX_WAIT, whole
from fanin.entry.http.calls import segment
from fanin.wire.json_types import Json
from fanin.wire.patterns import TAKEN

POLLS: Final = Backoff(base=0.5, cap=5.0)
"""Pauses of a taker that finds no work."""


class HttpsBuffers(HttpsService):
    """Takes work, and waits for it.

    A take waits here and not in the service, where a function would be paid for as long as it waits: it asks
    again after pauses that grow up to five seconds. They go on growing from one take to the next, until there
    is work.

    Args:
        api: the API.
        pauses: between two requests of a take.
    """

    def __init__(self, api: HttpsApi, *, pauses: Backoff = POLLS) -> None:
        super().__init__(api)
        self._pauses = pauses
        self._empty: dict[str, int] = {}
        """How often a buffer was found empty in a row."""

    def take(
        self, name: str, *, most: int = 1, wait: int = MAX_WAIT, visibility_timeout: int | None = None
    ) -> Sequence[Work]:
        whole("wait", wait, 0, MAX_WAIT)
        ask = partial(self.poll, name, most=most, visibility_timeout=visibility_timeout)
        if not wait:
            return ask()
        waiter, left = secrets.token_hex(8), float(wait)
        work = ask(waiter=waiter, waits=wait)
        while not work and left > 0:
            pause = min(left, self._pauses.delay(self._empty.get(name, 0)))
            self._empty[name] = self._empty.get(name, 0) + 1
            self._pauses.sleep(pause)
            left -= pause
            work = ask(waiter=waiter)
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
        ask: Json = {"most": most, "visibility_timeout": visibility_timeout}
        more = {"wait": 0} if waiter is None else {"waiter": waiter, "waits": waits}
        work = self._api.call(TAKEN, "POST", f"/buffers/{segment('name', name)}/take", ask | more)
        return list(work)
