"""All of fanin over HTTPS."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from fanin.app.api import Buffers, Diagnostics, Directory, Frames, Ledger, Redrives, Routing, Scatters
from fanin.client.https.api import HttpsApi, HttpsService, over_https

if TYPE_CHECKING:
    from fanin.entry.http.route import HttpRoute


class HttpsServices:
    """Implements ``fanin.app.api.Fanin`` against a deployed API; imports only what is called.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    @cached_property
    def ledger(self) -> Ledger:
        from fanin.client.https.ledger import HttpsLedger
        from fanin.entry.http.v1 import diagnostics, ledger

        return over_https(Ledger, (*ledger.ROUTES, *diagnostics.ROUTES), self._api, HttpsLedger)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        from fanin.entry.http.v1.diagnostics import ROUTES

        return over_https(Diagnostics, ROUTES, self._api)

    @cached_property
    def scatters(self) -> Scatters:
        return over_https(Scatters, _patterns(), self._api)

    @cached_property
    def frames(self) -> Frames:
        return over_https(Frames, _patterns(), self._api)

    @cached_property
    def buffers(self) -> Buffers:
        from fanin.client.https.buffers import HttpsBuffers

        return over_https(Buffers, _patterns(), self._api, HttpsBuffers)

    @cached_property
    def directory(self) -> Directory:
        return over_https(Directory, _patterns(), self._api, _HttpsDirectory)

    @cached_property
    def routing(self) -> Routing:
        return over_https(Routing, _patterns(), self._api)

    @cached_property
    def redrives(self) -> Redrives:
        from fanin.entry.http.v1.diagnostics import ROUTES

        return over_https(Redrives, ROUTES, self._api)


def _patterns() -> Sequence[HttpRoute]:
    from fanin.entry.http.v1.patterns import ROUTES

    return ROUTES


class _HttpsDirectory(HttpsService):
    members = Directory.members
