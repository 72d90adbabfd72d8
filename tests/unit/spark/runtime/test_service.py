"""What tasks learn about the stack, and how fast they write; how they reach it is tested on one."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from fanin.client import local_stack
from fanin.errors import NotConfigured
from fanin.spark.runtime.service import Service, SharedPace

TABLES = {
    "FANIN_BATCHES_TABLE": "b",
    "FANIN_WORDS_TABLE": "w",
    "FANIN_PARTS_TABLE": "p",
    "FANIN_DIRECTORY_TABLE": "d",
}


def test_credentials_do_not_travel():
    # Given an environment with keys
    environment = {**TABLES, "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-west-1"}
    # When the tasks learn which stack it is
    told = dict(Service.from_env(environment).environment)
    # Then they learn region and tables, and no key
    assert told == {name: value for name, value in environment.items() if name != "AWS_SECRET_ACCESS_KEY"}


def test_an_environment_that_names_no_table_is_refused():
    # Given only an API, when a job starts, then it says which variable is missing
    with pytest.raises(NotConfigured, match=r"FANIN_BATCHES_TABLE is not set.*FANIN_PROFILE=local"):
        Service.from_env({"FANIN_API_URL": "https://example.org"})


def test_a_profile_names_the_local_stack_and_its_keys(local):
    # Given an environment that names another stack, and the profile
    environment = {**TABLES, "AWS_SECRET_ACCESS_KEY": "of an account", "FANIN_PROFILE": "local"}
    # When the tasks learn which stack it is
    told = dict(Service.from_env(environment).environment)
    # Then it is the local one, as it is for a tracker
    assert told["FANIN_BATCHES_TABLE"] == local.batches_table
    assert told["AWS_ENDPOINT_URL"] == local.endpoint_url
    assert (told["AWS_SECRET_ACCESS_KEY"], told["AWS_SESSION_TOKEN"]) == (local.secret_access_key, "")
    # and they need not look for it themselves
    assert "FANIN_PROFILE" not in told


def test_what_the_profile_takes_back_reaches_the_tasks(local):
    # Given a driver whose environment has endpoints of its own, which its tasks may have inherited
    elsewhere = {
        "AWS_ENDPOINT_URL_DYNAMODB": "https://dynamodb.test",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    }
    # When the tasks learn which stack it is
    told = dict(Service.from_env({**elsewhere, "FANIN_PROFILE": "local"}).environment)
    # Then the first is empty, which counts as not set
    assert told["AWS_ENDPOINT_URL"] == local.endpoint_url
    assert {name: told[name] for name in elsewhere} == {
        "AWS_ENDPOINT_URL_DYNAMODB": "",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
    }


def test_endpoints_that_the_driver_ignores_are_ignored_by_its_tasks():
    environment = {**TABLES, "AWS_ENDPOINT_URL": "http://x", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}
    assert dict(Service.from_env(environment).environment) == environment


def test_a_profile_without_its_stack_is_refused(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotConfigured, match="start it with `fanin local up`"):
        Service.from_env({**TABLES, "FANIN_PROFILE": "local"})
    with pytest.raises(NotConfigured, match="the only profile is 'local'"):
        Service.from_env({**TABLES, "FANIN_PROFILE": "prod"})


def test_its_services_are_where_the_local_stack_has_them(monkeypatch, local):
    # Given a process that names its stack by the profile alone
    for name in local_stack.variables(local):
        monkeypatch.setenv(name, "of another stack")  # which is there again after the test
    local_stack.write(Path.cwd(), replace(local, endpoint_url="http://127.0.0.1:1", region="eu-west-1"))
    service = Service.from_env({"FANIN_PROFILE": "local"})
    # When a job asks where the services are that it calls, then that is the stack
    assert service.endpoints("dynamodb", "sqs") == {
        "DynamoDB": "http://127.0.0.1:1",
        "SQS": "http://127.0.0.1:1",
    }


@pytest.mark.parametrize("name", TABLES)
def test_each_table_is_asked_for_before_a_task_needs_it(monkeypatch, name):
    # Given all tables, then a driver and its tasks have a ledger
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    for variable in TABLES:
        monkeypatch.setenv(variable, "of another stack")  # which is there again after the test
    assert Service.from_env(TABLES).ledger()
    # When one is missing, then the driver says so
    with pytest.raises(NotConfigured, match=name):
        Service.from_env({variable: table for variable, table in TABLES.items() if variable != name})


def test_the_same_stack_is_the_same_value_wherever_it_is_made():
    first, again = Service.from_env(TABLES), Service.from_env(dict(reversed(TABLES.items())))
    assert first == again
    assert hash(first) == hash(again)
    assert pickle.loads(pickle.dumps(first)) == first


def test_by_default_it_is_the_stack_of_this_process(monkeypatch):
    for name, value in TABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("HOME", "/nowhere")

    told = dict(Service.from_env().environment)

    assert told["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert told.items() >= TABLES.items()
    assert "HOME" not in told


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


def pace_of(clock: Clock, most: float | None = None) -> Any:
    """A pace that counts its refusals."""
    pace: Any = SharedPace(most, clock=clock, sleep=clock.sleep)
    pace.refused = Mock(wraps=pace.refused)
    return pace


def rate_of(pace: SharedPace) -> float:
    pace._grow()
    return pace._rate


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


def test_nothing_waits_without_a_limit_and_without_refusals(clock):
    pace = pace_of(clock)
    assert send(pace, clock, 2) == pytest.approx(2_000, abs=2)
    assert rate_of(pace) == inf


def test_a_limit_is_kept_and_evenly(clock):
    pace = pace_of(clock, 100)
    assert send(pace, clock, 5) == pytest.approx(500, abs=2)
    # And also when units come in groups
    began = clock.now
    for _ in range(20):
        pace.wait(25)
    assert clock.now - began == pytest.approx(5, abs=0.3)


def test_it_finds_what_the_table_takes(clock):
    # Given a table that takes 300 writes a second, of a process that could send 1,000
    pace = pace_of(clock)
    accepted = send(pace, clock, 60, limited(clock, 300))
    # Then most of what the table takes is used, and little is refused
    assert accepted > 60 * 300 * 0.75
    assert pace.refused.call_count < accepted * 0.05
    assert rate_of(pace) == pytest.approx(300, rel=0.35)


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


def test_processes_share_what_the_table_takes(clock):
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


def test_the_rate_grows_again_as_far_as_the_limit(clock):
    pace = pace_of(clock, 100)
    send(pace, clock, 2)
    pace.refused()
    cut = rate_of(pace)
    assert cut == pytest.approx(70, abs=1)
    clock.now += 10
    assert rate_of(pace) == pytest.approx(90, abs=1)
    clock.now += 100
    assert rate_of(pace) == 100


def test_refusals_of_one_second_cut_once_and_never_to_nothing(clock):
    pace = pace_of(clock, 100)
    send(pace, clock, 2)
    for _ in range(50):
        pace.refused()
    assert rate_of(pace) == pytest.approx(70, abs=1)
    for _ in range(100):
        clock.now += 1
        pace.refused()
    assert rate_of(pace) == pytest.approx(1, abs=0.1)


def test_a_client_sends_at_the_pace_and_each_refused_attempt_counts(clock):
    # Given a client of a table that refuses the first two of three attempts
    client = boto3.client(
        "dynamodb",
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
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
    assert pace.refused.call_count == 2
    rate, before = rate_of(pace), clock.now
    answers.append(b'{"UnprocessedItems": {}}')
    put = {"PutRequest": {"Item": {"id": {"S": "1"}}}}
    client.batch_write_item(RequestItems={"t": [put, put]})
    # Then both rows have taken their time, and other errors do not count
    pace.wait()
    assert clock.now - before >= 2 / rate
    answers.append(b'{"__type":"x#ConditionalCheckFailedException"}')
    with pytest.raises(ClientError):
        client.update_item(TableName="t", Key={"id": {"S": "1"}})
    assert pace.refused.call_count == 2
