"""Calls in parallel, of which only those that are throttled are made again, until the time is up."""

from __future__ import annotations

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
        before: makes what the calls share, before threads can race for it.
    """

    def __init__(
        self,
        threads: int,
        backoff: Backoff,
        time_left: Callable[[], float],
        *,
        before: Callable[[], object],
    ) -> None:
        self._threads = threads
        self._backoff = backoff
        self._time_left = time_left
        self._before = before

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

        Calls are made until all went through, until nothing went through for some rounds, or until the time
        is up: then no call is begun any more.

        Returns:
            One answer for each, in order; ``Throttled`` or ``ServiceUnavailable`` in the place of a call that
            did not go through.
        """
        answers: dict[int, _B | FaninError] = {}
        waiting: Sequence[int] = range(len(arguments))
        idle = 0
        while waiting:
            found = self.map(lambda index: self._begin(call, arguments[index]), waiting)
            answers.update(zip(waiting, found, strict=True))
            throttled = [index for index in waiting if isinstance(answers[index], Throttled)]
            idle = idle + 1 if len(throttled) == len(waiting) else 0
            if not throttled or idle == _IDLE_ROUNDS or self._time_left() <= 0:
                break
            waiting = throttled
            self._backoff.wait(idle)
        return [answers[index] for index in range(len(arguments))]

    def _begin(self, call: Callable[[_A], _B], argument: _A) -> _B | FaninError:
        if self._time_left() <= 0:
            return Throttled("the time for this call is up; repeat it with what is left", retry_after=1)
        try:
            return call(argument)
        except (Throttled, ServiceUnavailable) as error:
            return error
