"""All of fanin over HTTPS."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from fanin.client.https.api import HttpsApi
from fanin.client.https.ledger import HttpsLedger

if TYPE_CHECKING:
    from fanin.client.https.buffers import HttpsBuffers
    from fanin.client.https.diagnostics import HttpsDiagnostics
    from fanin.client.https.directory import HttpsDirectory, HttpsRouting
    from fanin.client.https.frames import HttpsFrames
    from fanin.client.https.redrives import HttpsRedrives
    from fanin.client.https.scatters import HttpsScatters


class HttpsServices:
    """Implements ``fanin.app.api.Fanin`` against a deployed API; imports only what is called.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    @cached_property
    def ledger(self) -> HttpsLedger:
        return HttpsLedger(self._api)

    @cached_property
    def diagnostics(self) -> HttpsDiagnostics:
        from fanin.client.https.diagnostics import HttpsDiagnostics

        return HttpsDiagnostics(self._api)

    @cached_property
    def scatters(self) -> HttpsScatters:
        from fanin.client.https.scatters import HttpsScatters

        return HttpsScatters(self._api)

    @cached_property
    def frames(self) -> HttpsFrames:
        from fanin.client.https.frames import HttpsFrames

        return HttpsFrames(self._api)

    @cached_property
    def buffers(self) -> HttpsBuffers:
        from fanin.client.https.buffers import HttpsBuffers

        return HttpsBuffers(self._api)

    @cached_property
    def directory(self) -> HttpsDirectory:
        from fanin.client.https.directory import HttpsDirectory

        return HttpsDirectory(self._api)

    @cached_property
    def routing(self) -> HttpsRouting:
        from fanin.client.https.directory import HttpsRouting

        return HttpsRouting(self._api)

    @cached_property
    def redrives(self) -> HttpsRedrives:
        from fanin.client.https.redrives import HttpsRedrives

        return HttpsRedrives(self._api)
