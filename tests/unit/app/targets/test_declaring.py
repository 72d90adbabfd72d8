"""Bad targets are refused before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Defaults
from fanin.app.scatters.service import ScatterService
from fanin.app.targets.declaring import checked_targets
from fanin.domain.batch import OpenBatch
from fanin.domain.scatter import Recipient, Scatter
from fanin.domain.targets import Target, TargetType
from fanin.errors import ChannelRefused, FaninError, InvalidRequest, NotConfigured
from tests.unit.app.targets.conftest import QUEUE, URL, World, task


def test_as_many_and_as_short_as_may_be(world: World) -> None:
    world.memory.channels.queues["q"] = []
    targets = (task("t"), task(), task(), task(), Target(TargetType.SQS, queue_url="q"))

    assert checked_targets(world.ports, targets) == targets


def bad(kind: str, **fields: Any) -> Target:
    return Target(TargetType(kind), **fields)


@pytest.mark.parametrize(
    ("targets", "error", "why"),
    [
        ([task()] * 6, InvalidRequest, "at most 5"),
        ([bad("sqs")], InvalidRequest, r"on_end\[0\] has the type sqs, which needs queue_url"),
        ([task(), bad("sqs", url=URL)], InvalidRequest, r"on_end\[1\].*it has url"),
        ([bad("sqs", queue_url=QUEUE, url=URL)], InvalidRequest, "it has queue_url and url"),
        ([task("t" * 2_049)], InvalidRequest, "task_token"),
        ([task("")], InvalidRequest, "task_token"),
        ([bad("durable_callback", callback_id="not base64!")], InvalidRequest, "callback_id"),
        ([bad("durable_callback", callback_id="a" * 1_025)], InvalidRequest, "callback_id"),
        ([bad("sqs", queue_url="memory:nobody")], ChannelRefused, "tag"),
        ([bad("sqs", queue_url="memory:a.fifo")], ChannelRefused, "FIFO"),
        ([bad("webhook", url="https://127.0.0.1/")], InvalidRequest, "IP address"),
        ([bad("webhook", url="https://evil.example/")], InvalidRequest, "webhook_hosts"),
    ],
)
def test_a_bad_target_is_refused_and_nothing_is_written(
    world: World, targets: list[Target], error: type[FaninError], why: str
) -> None:
    scatter = Scatter("hello", [Recipient("", QUEUE)], on_end=targets)
    with pytest.raises(error, match=why):
        world.ledger.open(OpenBatch(on_end=targets), key="once")
    with pytest.raises(error, match=why):
        ScatterService(world.ledger).start(scatter, key="twice")
    assert not world.memory.accesses.writes
    assert not world.memory.accesses.sends


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (Target("pager", callback_id="t"), "needs a type of step_functions"),  # type: ignore[arg-type]
        (Target(TargetType.SQS, "later", queue_url=QUEUE), "when of complete"),  # type: ignore[arg-type]
    ],
)
def test_a_type_or_an_end_that_there_is_not_is_refused(world: World, target: Target, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why) as refused:
        checked_targets(world.ports, [target])
    assert str(refused.value) == (
        "on_end[0] needs a type of step_functions, durable_callback, sqs, webhook,"
        " and when of complete, failed, any, failing, waiting, progress"
    )


def test_a_process_that_does_not_know_the_queue_of_targets_says_so(world: World) -> None:
    ledger = LedgerService(world.memory.ports(Defaults(targets=False)))
    with pytest.raises(NotConfigured, match="FANIN_TARGETS_QUEUE_URL"):
        ledger.open(OpenBatch(on_end=[task()]))
    ledger.open(OpenBatch())
    assert not world.memory.records._namespaces
