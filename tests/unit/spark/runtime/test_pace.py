"""How fast a process writes: the limit that it was given, and the one that it finds."""

from __future__ import annotations

from collections.abc import Callable

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from fanin.spark.runtime.service import SharedPace


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def pace_of(clock: Clock, most: float | None = None) -> SharedPace:
    return SharedPace(most, clock=clock, sleep=clock.sleep)


def send(pace: SharedPace, clock: Clock, seconds: float, accepts: Callable[[], bool] = lambda: True) -> int:
    """Write one after the other, each a millisecond, for some seconds; returns how many were accepted."""
    until, accepted = clock.now + seconds, 0
    while clock.now < until:
        pace.wait()
        clock.now += 0.001
        if accepts():
            accepted += 1
        else:
            pace.refused()
    return accepted


def limited(clock: Clock, most: int) -> Callable[[], bool]:
    """A table that takes so many writes in each second."""
    taken: dict[int, int] = {}

    def accepts() -> bool:
        second = int(clock.now)
        taken[second] = taken.get(second, 0) + 1
        return taken[second] <= most

    return accepts


def test_nothing_waits_without_a_limit_and_without_refusals(clock: Clock) -> None:
    pace = pace_of(clock)
    assert send(pace, clock, 2) == pytest.approx(2_000, abs=2)
    assert pace.rate is None


def test_a_limit_is_kept_and_evenly(clock: Clock) -> None:
    pace = pace_of(clock, 100)
    assert send(pace, clock, 5) == pytest.approx(500, abs=2)
    # And also when units come in groups
    began = clock.now
    for _ in range(20):
        pace.wait(25)
    assert clock.now - began == pytest.approx(5, abs=0.3)


def test_it_finds_what_the_table_takes(clock: Clock) -> None:
    # Given a table that takes 300 writes a second, of a process that could send 1,000
    pace = pace_of(clock)
    accepted = send(pace, clock, 60, limited(clock, 300))

    # Then most of what the table takes is used, and little is refused
    assert accepted > 60 * 300 * 0.75
    assert pace.refusals < accepted * 0.05
    assert pace.rate == pytest.approx(300, rel=0.35)


class Process:
    """Writes when its pace lets it, while the time of all processes passes."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._ready_at = clock, 0.0
        self.accepted = 0
        self.pace = SharedPace(clock=clock, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self._ready_at = self._clock.now + seconds

    def run(self, accepts: Callable[[], bool]) -> None:
        """What it does in a millisecond."""
        if self._clock.now < self._ready_at:
            return
        self.pace.wait()
        if accepts():
            self.accepted += 1
        else:
            self.pace.refused()


def test_processes_share_what_the_table_takes(clock: Clock) -> None:
    # Given a process that has had the table for a minute, and a second one
    accepts = limited(clock, 200)
    first, second = Process(clock), Process(clock)
    for processes, seconds in (((first,), 60), ((first, second), 120)):
        before = [process.accepted for process in (first, second)]
        for _ in range(seconds * 1000):
            for process in processes:
                process.run(accepts)
            clock.now += 0.001

    # Then both have had their share of the time that they were together, and wasted little of it
    shares = [process.accepted - some for process, some in zip((first, second), before, strict=True)]
    assert sum(shares) > 120 * 200 * 0.75
    assert min(shares) > sum(shares) * 0.3


def test_the_rate_grows_again_as_far_as_the_limit(clock: Clock) -> None:
    pace = pace_of(clock, 100)
    send(pace, clock, 2)
    pace.refused()
    cut = pace.rate
    assert cut == pytest.approx(70, abs=1)
    clock.now += 10
    assert pace.rate == pytest.approx(90, abs=1)
    clock.now += 100
    assert pace.rate == 100


def test_refusals_of_one_second_cut_once_and_never_to_nothing(clock: Clock) -> None:
    pace = pace_of(clock, 100)
    send(pace, clock, 2)
    for _ in range(50):
        pace.refused()
    assert pace.rate == pytest.approx(70, abs=1)
    for _ in range(100):
        clock.now += 1
        pace.refused()
    assert pace.rate == pytest.approx(1, abs=0.1)


def test_a_client_sends_at_the_pace_and_each_refused_attempt_counts(clock: Clock) -> None:
    # Given a client of a table that refuses the first two of three attempts
    client = boto3.client(
        "dynamodb",
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106
        config=Config(retries={"mode": "standard", "total_max_attempts": 3}),
    )
    answers = [b'{"__type":"x#ThrottlingException"}'] * 2 + [b"{}"]

    def answer(request, **_):
        body = answers.pop(0)

        class Raw:
            def stream(self):
                yield body

        return AWSResponse(request.url, 400 if b"__type" in body else 200, {}, Raw())

    pace = pace_of(clock)
    pace.attach(client)
    client.meta.events.register_last("before-send.dynamodb", answer)

    # When a row is written, and then two in one call
    client.update_item(TableName="t", Key={"id": {"S": "1"}})
    assert pace.refusals == 2
    rate, before = pace.rate, clock.now
    answers.append(b'{"UnprocessedItems": {}}')
    put = {"PutRequest": {"Item": {"id": {"S": "1"}}}}
    client.batch_write_item(RequestItems={"t": [put, put]})

    # Then both rows have taken their time, and other errors do not count
    pace.wait()
    assert clock.now - before >= 2 / rate
    answers.append(b'{"__type":"x#ConditionalCheckFailedException"}')
    with pytest.raises(ClientError):
        client.update_item(TableName="t", Key={"id": {"S": "1"}})
    assert pace.refusals == 2
