"""botocore for real: each write of each use case takes effect, and its answer is lost on the way back."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3
import botocore.endpoint
import pytest

from fanin.adapters.backoff import Backoff
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.memory import FixedClock, Memory
from fanin.app.services import Services
from fanin.errors import OutcomeUnknown, ServiceUnavailable
from tests.integration.conftest import create_tables, on_tables
from tests.oracle.losing import LosingProxy, losing
from tests.oracle.twin import ports_on
from tests.oracle.use_cases import USE_CASES, Scene, UseCase

pytestmark = pytest.mark.oracle
TABLES = ("batches", "words", "parts", "directory")


@dataclass(frozen=True)
class Stage:
    """A store behind a proxy, the connection that a deployed function would have to it, and one around it."""

    proxy: LosingProxy
    connection: Connection
    around: Connection

    def play(
        self, case: UseCase, lost: int | None, *, meanwhile: bool = False
    ) -> tuple[object, dict[str, Any]]:
        """Make the call in a world of its own, with the answer to one of its writes lost.

        Args:
            case: what to call.
            lost: which answer; None loses none.
            meanwhile: whether another process makes the same call before botocore repeats the write.

        Returns:
            What its caller was told, an error or an answer, and everything that is there afterwards.
        """
        prefix, memory = f"test-{uuid4().hex[:12]}", Memory(clock=FixedClock())
        self.proxy.lose(None)
        create_tables(self.around, prefix)
        stores = on_tables(self.connection, prefix, memory.clock)
        scene = Scene(memory, Services(ports_on(memory, stores)))
        act = case.given(scene)

        def another() -> None:
            scene.services = Services(ports_on(memory, stores))
            act()

        self.proxy.lose(lost, another if meanwhile else None)
        try:
            told: object = act()
        except (ServiceUnavailable, OutcomeUnknown) as error:
            told = error
        return told, self.left(prefix, memory)

    def left(self, prefix: str, memory: Memory) -> dict[str, Any]:
        """All rows, without the versions that a repeat raises; queues, jobs, alarms and rules."""
        rows = {
            table: sorted(map(_plain, self.around.client.scan(TableName=f"{prefix}-{table}")["Items"]))
            for table in TABLES
        }
        queues = {url: [sent.body for sent in queue] for url, queue in memory.channels.queues.items()}
        for url, queue in memory.queues._queues.items():  # a look at a queue moves what has arrived
            queues[url] = [held.body for held in queue._held.values()] + queues[url]
        rest = {"jobs": memory.jobs.waiting, "alarms": memory.timers.alarms, "rules": memory.rules.patterns}
        return rows | rest | {"queues": queues}


def _plain(row: Mapping[str, Any]) -> str:
    """A row as text that tells no order of attributes and sets, and no version."""
    values = {name: value for name, value in row.items() if name != "version"}
    sets = {name: {"NS": sorted(value["NS"])} for name, value in values.items() if "NS" in value}
    return json.dumps(values | sets, sort_keys=True, default=repr)


@pytest.fixture(scope="module")
def stage(second_store: str) -> Iterator[Stage]:
    with losing(second_store) as proxy, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", proxy.url)
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        patch.setattr(botocore.endpoint, "time", Instant)
        connection = Connection(backoff=Backoff(base=0.001))
        _ = connection.client, connection.once
        around = Connection(lambda: boto3.client("dynamodb", endpoint_url=second_store))
        yield Stage(proxy, connection, around)


class Instant:
    """Stands for the time module in botocore, so that repeats need no wait."""

    sleep: Callable[[float], None] = staticmethod(lambda _seconds: None)


@pytest.mark.parametrize("name", list(USE_CASES))
def test_a_use_case_bears_the_loss_of_any_answer(stage, name):
    # Given what a use case says and leaves when nothing is lost
    case = USE_CASES[name]
    told, left = stage.play(case, None)
    writes = stage.proxy.writes()
    assert writes

    for number in range(writes):
        # When the answer to one of its writes is lost, and botocore sends that write again
        answer, rest = stage.play(case, number)
        where = f"write {number}, {stage.proxy.lost}"
        # Then it leaves the same, and says the same, or that the answer was lost
        assert stage.proxy.lost, where
        if isinstance(answer, ServiceUnavailable | OutcomeUnknown):
            assert case.once, where
            if not case.whole:
                continue
        assert rest == left, where
        if case.told and not isinstance(answer, ServiceUnavailable | OutcomeUnknown):
            assert answer == told, where


@pytest.mark.parametrize("name", [name for name, case in USE_CASES.items() if case.again])
def test_a_use_case_bears_another_that_does_the_same_before_the_repeat(stage, name):
    # Given what a use case says and leaves when nothing is lost
    case = USE_CASES[name]
    told, left = stage.play(case, None)

    for number in range(stage.proxy.writes()):
        # When an answer is lost, and another process makes the same call before botocore repeats the write
        answer, rest = stage.play(case, number, meanwhile=True)
        where = f"write {number}, {stage.proxy.lost}"
        # Then there is no trace of it, but that messages may come twice
        assert without_repeats(rest) == without_repeats(left), where
        if case.told:
            assert answer == told, where


def without_repeats(left: dict[str, Any]) -> dict[str, Any]:
    """What is left, with each job and each message once."""
    queues = {url: set(bodies) for url, bodies in left["queues"].items()}
    return left | {"jobs": set(map(str, left["jobs"])), "queues": queues}


def test_the_proxy_loses_answers_and_no_writes(stage):
    stage.play(USE_CASES["close"], 0)

    repeated = [operation for operation in stage.proxy.seen if operation == stage.proxy.lost]
    assert len(repeated) >= 2
