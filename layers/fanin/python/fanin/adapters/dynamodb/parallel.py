"""Calls in parallel, of which only those that are throttled are made again, until the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Final, TypeVar

from fanin.adapters.backoff import Backoff
from fanin.errors import FaninError, ServiceUnavailable, Throttled

_A = TypeVar("_A")
_B = TypeVar("_B")

_IDLE_ROUNDS: Final = 4
"""Rounds of throttled calls in which none went through, before the others are answered for."""


class Parallel:
    """Makes several calls at a time.

    Args:
        threads: how many calls may run at a time.
        backoff: waits between the rounds of calls that were throttled.
        time_left: seconds in which ``attempt`` may begin calls.
        patience: seconds for which ``attempt`` goes on when nothing goes through; a job has more of it than a
            function. With any, calls without an answer are made again, too.
        before: makes what the calls share, before threads can race for it.
        clock: seconds, from any moment on.
    """

    def __init__(
        self,
        threads: int,
        backoff: Backoff,
        time_left: Callable[[], float],
        *,
        patience: float = 0,
        before: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._threads = threads
        self._backoff = backoff
        self._time_left = time_left
        self._patience = patience
        self._again = (Throttled, ServiceUnavailable) if patience else (Throttled,)
        self._before = before
        self._clock = clock

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._threads, thread_name_prefix="fanin-dynamodb")

    def map(self, call: Callable[[_A], _B], arguments: Sequence[_A]) -> list[_B]:
        """Call for every argument, in parallel if there are several; the first error cancels the rest."""
        if len(arguments) <= 1:
            return [call(argument) for argument in arguments]
        self._before()
        return list(self._pool.map(call, arguments))

    def attempt(self, call: Callable[[_A], _B], arguments: Sequence[_A]) -> list[_B | FaninError]:
        """Call for every argument, in parallel; only calls that are throttled are made again.

        Calls are made until all went through, until nothing went through for some rounds and as long as the
        patience lasts, or until the time is up: then no call is begun any more.

        Returns:
            One answer for each, in order; ``Throttled`` or ``ServiceUnavailable`` in the place of a call that
            did not go through.
        """
        answers: dict[int, _B | FaninError] = {}
        waiting: Sequence[int] = range(len(arguments))
        idle, progress_at = 0, self._clock()
        while waiting:
            found = self.map(lambda index: self._begin(call, arguments[index]), waiting)
            answers.update(zip(waiting, found, strict=True))
            again = [index for index in waiting if isinstance(answers[index], self._again)]
            if len(again) < len(waiting):
                idle, progress_at = 0, self._clock()
            else:
                idle += 1
            patient = idle < _IDLE_ROUNDS or self._clock() - progress_at < self._patience
            if not again or not patient or self._time_left() <= 0:
                break
            waiting = again
            self._backoff.wait(idle)
        return [answers[index] for index in range(len(arguments))]

    def _begin(self, call: Callable[[_A], _B], argument: _A) -> _B | FaninError:
        if self._time_left() <= 0:
            return Throttled("the time for this call is up; repeat it with what is left", retry_after=1)
        try:
            return call(argument)
        except (Throttled, ServiceUnavailable) as error:
            return error
