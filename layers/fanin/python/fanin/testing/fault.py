"""Faults for tests: an access that fails, or whose answer is lost."""

from __future__ import annotations

from fanin.errors import ServiceUnavailable


class Fault:
    """An ``on_call`` that raises at one kind of access, and then no more.

    Before the access it never arrived; after it, it did and its answer was lost. An error of ``fanin.errors``
    is what an outage looks like, and is retried as such; any other, and the caller has died.

    Args:
        call: where, such as ``words.clear``, ``events.publish`` or ``sqs.send_message_batch``.
        moment: ``before`` or ``after``.
        error: what to raise.
        times: how often.
        skip: accesses of that kind that go well first.

    Attributes:
        left: how often it is still to happen; zero, once it has happened as often as asked.
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
