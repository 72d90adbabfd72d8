"""Faults for tests: accesses that fail, or whose answer is lost."""

from __future__ import annotations

from fanin.errors import InvalidRequest, ServiceUnavailable


class Fault:
    """An ``on_call`` that raises at one kind of access, a given number of times.

    ``before``: the access never arrived. ``after``: it took effect, and its answer was lost. A retryable
    error of ``fanin.errors`` is what an outage looks like; any other stands for a crash of the caller.

    Args:
        call: the access, such as ``words.clear``, ``events.publish`` or ``sqs.send_message_batch``.
        moment: ``before`` or ``after``.
        error: what to raise; ``ServiceUnavailable`` if None.
        times: how often to raise.
        skip: how many accesses of that kind succeed first.

    Attributes:
        left: how often it will still raise.

    Raises:
        InvalidRequest: ``call`` has no dot, or ``moment`` is neither ``before`` nor ``after``.
    """

    def __init__(
        self,
        call: str,
        moment: str = "before",
        *,
        error: Exception | None = None,
        times: int = 1,
        skip: int = 0,
    ) -> None:
        if "." not in call:
            raise InvalidRequest(f"a fault's call is an access such as 'words.clear', not {call!r}")
        if moment not in ("before", "after"):
            raise InvalidRequest(f"a fault's moment is 'before' or 'after', not {moment!r}")
        self.left = times
        self._where = call, moment
        self._error = error or ServiceUnavailable("no answer, for a test")
        self._skip = skip

    def __call__(self, call: str, moment: str) -> None:
        if (call, moment) != self._where or not self.left:
            return
        if self._skip:
            self._skip -= 1
            return
        self.left -= 1
        raise self._error
