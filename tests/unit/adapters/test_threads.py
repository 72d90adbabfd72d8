"""Threads of a process that was forked."""

import os
import signal
import time

from fanin.adapters.forks import Threads


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
