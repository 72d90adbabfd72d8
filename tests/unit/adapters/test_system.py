import time

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
