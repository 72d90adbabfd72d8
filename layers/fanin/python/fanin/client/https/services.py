"""All of fanin over HTTPS."""

import secrets
import time
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, Final

from fanin.adapters.backoff import Backoff
from fanin.app.api import Buffers, Diagnostics, Directory, Frames, Ledger, Redrives, Routing, Scatters
from fanin.client.ended_batches import EndedBatches
from fanin.client.https.api import HttpsApi, HttpsService, over_https
from fanin.domain.batch import Batch, Mode
from fanin.domain.buffer import Work
from fanin.domain.limits import MAX_WAIT, whole
from fanin.domain.marks import Count, Mark, Marked, batch_of, merge
from fanin.entry.http.calls import segment
from fanin.entry.http.route import HttpRoute
from fanin.errors import GONE, FaninError, InvalidRequest, OutcomeUnknown, ServiceUnavailable
from fanin.wire.json_types import Json
from fanin.wire.marks import size_of


class HttpsServices:
    """Implements ``fanin.app.api.Fanin`` against a deployed API; imports only what is called.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    @cached_property
    def ledger(self) -> Ledger:
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


class HttpsLedger(HttpsService):
    """Marks items, each request of them as often as that is safe.

    What an estimated batch counts is not sent again when its answer was lost, because a repeat counts again.
    The modes of batches are learned from every answer; the service is asked for those that are not known only
    when an answer was lost.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        super().__init__(api)
        self._known = EndedBatches(time.monotonic)

    def _ask(self, name: str, given: dict[str, Any], **how: Any) -> Any:
        answer = super()._ask(name, given, **how)
        batch = answer if isinstance(answer, Batch) else getattr(answer, "batch", None)
        if batch is not None:
            self._known.note(batch)
        return answer

    def mark(self, marks: Sequence[Mark]) -> Marked:
        refused: dict[int, FaninError] = {}
        for place, mark in enumerate(marks):
            try:
                size_of(mark)
            except InvalidRequest as error:
                refused[place] = error
        places = [place for place in range(len(marks)) if place not in refused]
        sent = [marks[place] for place in places]
        marked = self._mark(sent) if sent else Marked(())
        return merge([marked.at(places), Marked((), refused=refused)])

    def _mark(self, marks: Sequence[Mark]) -> Marked:
        try:
            marked: Marked = self._ask(
                "mark",
                {"marks": marks},
                repeatable=lambda: self._repeatable(marks),
                fresh=not all(map(self._is_exact, {batch_of(mark) for mark in marks})),
            )
        except OutcomeUnknown as lost:
            unknown = {place: lost for place, mark in enumerate(marks) if self._may_count(mark)}
            silent = ServiceUnavailable(str(lost))
            left = {
                place: silent if self._is_exact(batch_of(mark)) else lost  # of which nobody knows the mode
                for place, mark in enumerate(marks)
                if place not in unknown
            }
            return Marked((), left=left, unknown=unknown)
        self._known.learn(marks, marked)
        return marked

    def _is_exact(self, batch_id: int | None) -> bool:
        return batch_id is None or self._known.of(batch_id).exact is True

    def _may_count(self, mark: Mark) -> bool:
        """Whether a mark is known to be of an estimated batch, which counts a repeat again."""
        if isinstance(mark, Count):
            return True
        batch_id = batch_of(mark)
        return batch_id is not None and self._known.of(batch_id).exact is False

    def _repeatable(self, marks: Sequence[Mark]) -> bool:
        """Whether none of the marks is of an estimated batch; asks for the modes that are not known.

        It asks of all batches, so that it is known afterwards which marks may be repeated.
        """
        named = dict.fromkeys(batch_of(mark) for mark in marks)
        exact = [self._exact_batch(batch_id) for batch_id in named if batch_id is not None]
        return all(exact) and not any(isinstance(mark, Count) for mark in marks)

    def _exact_batch(self, batch_id: int) -> bool:
        if (exact := self._known.of(batch_id).exact) is not None:
            return exact
        try:
            return self._ask("status", {"batch_id": batch_id}).batch.mode is Mode.EXACT
        except GONE:
            return True  # the service refuses such a call


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
        from fanin.wire.patterns import TAKEN

        ask: Json = {"most": most, "visibility_timeout": visibility_timeout}
        more = {"wait": 0} if waiter is None else {"waiter": waiter, "waits": waits}
        work = self._api.call(TAKEN, "POST", f"/buffers/{segment('name', name)}/take", ask | more)
        return list(work)


class _HttpsDirectory(HttpsService):
    members = Directory.members
