"""Calls in parallel, and the client that they share."""

import math
from collections.abc import Callable
from threading import Barrier
from typing import Any

import pytest

from fanin.adapters.backoff import Backoff
from fanin.adapters.dynamodb import Connection
from fanin.adapters.dynamodb.parallel import Parallel
from fanin.errors import ServiceUnavailable, Throttled


@pytest.mark.parametrize("calls", [2, 4])
def test_several_calls_go_at_once(connection: Connection, calls: int) -> None:
    barrier = Barrier(calls)

    def call(number: int) -> int:
        barrier.wait(timeout=60)  # passes only if all are under way together
        return number * 2

    assert connection.parallel.map(call, range(calls)) == [number * 2 for number in range(calls)]


def test_what_the_calls_share_is_made_before_any_of_them_begins() -> None:
    order: list[str] = []
    parallel = Parallel(2, Backoff(), lambda: math.inf, before=lambda: order.append("shared"))

    parallel.map(order.append, ["call", "call"])

    assert order == ["shared", "call", "call"]


def test_one_call_needs_neither_thread_nor_client() -> None:
    connection = Connection(never)

    assert connection.parallel.map(abs, [-3]) == [3]
    assert connection.parallel.map(abs, []) == []


def test_an_error_of_one_call_reaches_the_caller(connection: Connection) -> None:
    def call(number: int) -> int:
        if number == 2:
            raise Throttled("slow")
        return number

    with pytest.raises(Throttled):
        connection.parallel.map(call, [1, 2, 3])


def test_the_client_is_made_once_and_late(client: Any) -> None:
    made: list[int] = []

    def make() -> Any:
        made.append(1)
        return client

    connection = Connection(make)
    assert made == []

    assert connection.client is connection.client
    assert made == [1]


never: Callable[[], Any] = lambda: pytest.fail("a client was made")  # noqa: E731


class TestAttempt:
    def test_repeats_the_calls_that_are_throttled_and_no_others(
        self, connection: Connection, waits: list[float]
    ) -> None:
        calls: list[int] = []

        def call(number: int) -> int:
            calls.append(number)
            if number % 2 and calls.count(number) < 3:
                raise Throttled("slow")
            return number * 2

        assert connection.parallel.attempt(call, range(6)) == [0, 2, 4, 6, 8, 10]
        assert sorted(calls) == [0, 1, 1, 1, 2, 3, 3, 3, 4, 5, 5, 5]
        assert waits == [0.02, 0.04]

    def test_goes_on_for_as_long_as_something_goes_through(self, connection: Connection) -> None:
        gone: list[int] = []

        def call(number: int) -> int:
            if number > len(gone):
                raise Throttled("slow")
            gone.append(number)
            return number

        connection._threads = 1
        assert connection.parallel.attempt(call, range(9, -1, -1)) == list(range(9, -1, -1))

    def test_gives_up_when_nothing_goes_through(self, connection: Connection, waits: list[float]) -> None:
        def call(number: int) -> int:
            if number:
                raise Throttled("slow")
            return number

        zero, one = connection.parallel.attempt(call, [0, 1])
        assert (zero, type(one)) == (0, Throttled)
        assert len(waits) == 4

    def test_an_unknown_end_is_answered_and_not_repeated(self, connection: Connection) -> None:
        calls: list[int] = []

        def call(number: int) -> int:
            calls.append(number)
            raise ServiceUnavailable("no answer")

        (answer,) = connection.parallel.attempt(call, [7])
        assert (type(answer), calls) == (ServiceUnavailable, [7])

    def test_begins_nothing_when_the_time_is_up(self) -> None:
        left = [1.0, 1.0, 0.0]
        connection = Connection(never, threads=1, time_left=lambda: left.pop(0) if len(left) > 1 else left[0])
        connection.__dict__["client"] = None
        answers = connection.parallel.attempt(abs, [-1, -2, -3, -4])
        assert answers[:2] == [1, 2]
        late = [answer for answer in answers[2:] if isinstance(answer, Throttled)]
        assert [(str(answer), answer.retry_after) for answer in late] == [
            ("the time for this call is up; repeat it with what is left", 1)
        ] * 2

    def test_a_defect_is_raised(self, connection: Connection) -> None:
        with pytest.raises(ZeroDivisionError):
            connection.parallel.attempt(lambda number: 1 // number, [1, 0])


class TestPatience:
    """A job goes on for minutes while nothing goes through."""

    def test_goes_on_until_it_lasts_no_longer(self) -> None:
        # Given a store that takes nothing, and two minutes of patience
        time = [0.0]
        parallel = patient(120, time)

        (answer,) = parallel.attempt(refuse, [1])

        assert isinstance(answer, Throttled)
        assert 120 <= time[0] < 145

    def test_begins_anew_with_each_call_that_goes_through(self) -> None:
        # Given a store that takes one call in each hundred seconds
        time, gone = [0.0], list[int]()

        def call(number: int) -> int:
            if time[0] < 100 * (len(gone) + 1):
                raise Throttled("slow")
            gone.append(number)
            return number

        assert patient(120, time).attempt(call, range(5)) == list(range(5))
        assert time[0] > 400

    def test_makes_calls_without_an_answer_again(self) -> None:
        answers = [ServiceUnavailable("no answer"), Throttled("slow"), ServiceUnavailable("no answer")]

        def call(number: int) -> int:
            if answers:
                raise answers.pop()
            return number

        assert patient(120, [0.0]).attempt(call, [7]) == [7]


def refuse(number: int) -> int:
    raise Throttled(f"slow: {number}")


def patient(seconds: float, time: list[float]) -> Parallel:
    """Calls one after the other, in a time that passes only while they wait."""

    def sleep(waited: float) -> None:
        time[0] += waited

    backoff = Backoff(tries=40, cap=20, sleep=sleep, fraction=lambda: 1)
    return Parallel(
        1, backoff, lambda: math.inf, patience=seconds, before=lambda: None, clock=lambda: time[0]
    )
