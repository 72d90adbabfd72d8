"""The system's clock and randomness, and threads of a process that was forked."""

import os
import signal
import time

from fanin.adapters.forks import Threads
from fanin.adapters.system import SystemClock, SystemRandom


def test_the_clock_tells_milliseconds():
    before = time.time()
    now = SystemClock().now()
    after = time.time()

    assert int(before * 1000) <= now <= after * 1000
    assert isinstance(now, int)


def test_randomness_has_the_asked_size_and_differs():
    random = SystemRandom()

    assert all(0 <= random.bits(12) < 2**12 for _ in range(100))
    assert len({random.bytes(16) for _ in range(100)}) == 100
    assert len(random.bytes(16)) == 16


def test_a_sleep_takes_the_seconds_it_was_given():
    clock = SystemClock()
    before = clock.monotonic()

    clock.sleep(0.01)

    assert 0.01 <= clock.monotonic() - before < 10


def slowly(number: int) -> int:
    time.sleep(0.01)
    return number + 1


def test_a_process_that_is_forked_starts_threads_of_its_own():
    # Given threads that have worked, and wait for more
    threads = Threads(2, "test")
    assert threads.map(slowly, [1, 2]) == [2, 3]
    # When the process forks, and the child makes calls
    child = os.fork()
    if not child:
        signal.alarm(10)  # what waits for threads of its parent waits for ever
        os._exit(threads.map(slowly, [3, 4]) != [4, 5])
    # Then it gets its answers
    assert os.waitpid(child, 0)[1] == 0
    assert threads.map(slowly, [5, 6]) == [6, 7]
