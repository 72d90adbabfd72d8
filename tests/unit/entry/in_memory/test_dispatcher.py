"""The work that is due: run in order, by one thread at a time, in calls and while time passes."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from fanin.entry.in_memory.clock import StandingClock
from fanin.entry.in_memory.dispatcher import Dispatcher

Work = Callable[[], object]


class Agenda:
    """A source of work that is due at given times."""

    def __init__(self, clock: StandingClock) -> None:
        self.work: list[tuple[int, Work]] = []
        self._clock = clock

    def at(self, ms: int, work: Work) -> None:
        self.work.append((self._clock.now() + ms, work))

    def due(self) -> int | None:
        return min((at for at, _ in self.work), default=None)

    def run(self) -> bool:
        for place, (at, work) in enumerate(self.work):
            if at <= self._clock.now():
                del self.work[place]
                work()
                return True
        return False


class Service:
    """Puts work on an agenda."""

    def __init__(self, agenda: Agenda) -> None:
        self.agenda = agenda

    def later(self, ms: int, work: Work) -> str:
        """Say that it was noted."""
        self.agenda.at(ms, work)
        return "noted"

    def all(self, *works: Work) -> None:
        for work in works:
            self.later(0, work)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(0)


@pytest.fixture
def agenda(clock: StandingClock) -> Agenda:
    return Agenda(clock)


@pytest.fixture
def dispatcher(clock: StandingClock, agenda: Agenda) -> Dispatcher:
    dispatcher = Dispatcher(clock)
    dispatcher.add(agenda)
    return dispatcher


@pytest.fixture
def service(dispatcher: Dispatcher, agenda: Agenda) -> Service:
    return dispatcher.after_each_call(Service(agenda))


def test_what_follows_from_a_call_is_run_after_it(service):
    done: list[str] = []
    assert service.later(0, lambda: done.append("a")) == "noted"
    assert done == ["a"]
    assert service.later.__doc__ == "Say that it was noted."


def test_what_was_due_is_run_before_a_call(service, clock):
    done: list[str] = []
    service.later(1_000, lambda: done.append("earlier"))
    clock.advance(1_000)
    service.later(0, lambda: done.append("this"))
    assert done == ["earlier", "this"]


def test_a_call_within_a_call_runs_nothing_before_the_outer_one_is_through(service):
    pending: list[int] = []
    service.all(lambda: pending.append(len(service.agenda.work)), lambda: None)
    assert pending == [1]  # when the first ran, the second was there


def test_work_that_makes_more_is_not_nested(service):
    depth, deepest = [0], [0]

    def work(left: int) -> None:
        depth[0] += 1
        deepest[0] = max(deepest[0], depth[0])
        if left:
            service.later(0, lambda: work(left - 1))
        depth[0] -= 1

    service.later(0, lambda: work(3_000))
    assert deepest == [1]


def test_a_wait_runs_what_is_due_when_it_is_due(dispatcher, agenda, clock):
    times: list[int] = []
    for ms in (2_000, 1_000, 3_001):
        agenda.at(ms, lambda: times.append(clock.now()))
    agenda.at(1_500, lambda: agenda.at(500, lambda: times.append(-clock.now())))
    dispatcher.wait(3)
    assert times == [1_000, 2_000, -2_000]
    assert clock.now() == 3_000


def test_a_wait_ends_early_when_it_is_ready(dispatcher, agenda, clock):
    done: list[str] = []
    agenda.at(1_000, lambda: done.append("a"))
    agenda.at(2_000, lambda: done.append("b"))
    dispatcher.wait(60, lambda: bool(done))
    assert (clock.now(), done) == (1_000, ["a"])
    dispatcher.wait(60, lambda: True)
    assert clock.now() == 1_000


def test_work_may_wait_for_other_work(dispatcher, service, clock):
    done: list[str] = []

    def waiting() -> None:
        dispatcher.wait(5, lambda: bool(done))
        done.append("waiting")

    service.all(waiting, lambda: service.later(1_000, lambda: done.append("other")))
    assert done == ["other", "waiting"]
    assert clock.now() == 1_000


def test_work_that_waits_for_its_own_threads_does_not_wait_for_ever(dispatcher, service):
    done: list[int] = []

    def send(n: int) -> None:
        dispatcher.wait(1)
        service.later(0, lambda: done.append(n))

    def work() -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(send, range(8)))
        assert done == []  # it is this thread's to run

    service.later(0, work)
    assert sorted(done) == list(range(8))


def test_one_thread_at_a_time_runs_work_and_the_others_leave_theirs_to_it(service):
    # Given work that goes on while another thread makes a call
    inside, go_on = threading.Event(), threading.Event()
    threads: list[str] = []

    def slow() -> None:
        inside.set()
        assert go_on.wait(60)
        threads.append(threading.current_thread().name)

    first = threading.Thread(target=service.later, args=(0, slow), name="first")
    first.start()
    assert inside.wait(60)
    # When that call is over, Then its work is not run yet
    service.later(0, lambda: threads.append(threading.current_thread().name))
    assert threads == []
    # But by the thread that is at it
    go_on.set()
    first.join(60)
    assert threads == ["first", "first"]


def test_an_error_of_the_work_ends_the_call_and_the_rest_is_run_by_the_next(service):
    done: list[str] = []

    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        service.all(fail, lambda: done.append("rest"))
    assert done == []
    service.later(0, lambda: done.append("next"))
    assert done == ["rest", "next"]


def test_time_does_not_pass_while_another_thread_works(clock, dispatcher):
    # Given a thread within a call
    began, finish, seen = threading.Event(), threading.Event(), list[int]()

    def work() -> None:
        with dispatcher.call():
            began.set()
            finish.wait(60)
            seen.append(clock.now())

    with ThreadPoolExecutor(2) as pool:
        working = pool.submit(work)
        began.wait(60)
        # When another waits, then time passes only after the call
        waiting = pool.submit(dispatcher.wait, 300)
        finish.set()
        working.result(60)
        waiting.result(60)
    assert seen == [0]
    assert clock.now() == 300_000
